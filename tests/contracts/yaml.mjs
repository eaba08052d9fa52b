// What the package `yaml` reads in a file, in the way that the catalog of Backstage calls it: a text
// in JSON a line on stdin; on stdout, a line, {"documents": […]} or {"refused": message}.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const yaml = createRequire(import.meta.url)("yaml");

function answer(text) {
  const documents = yaml.parseAllDocuments(text, { merge: true, logLevel: "silent" });
  for (const document of documents) {
    if (document.errors.length > 0) {
      return { refused: document.errors[0].message };
    }
  }
  return { documents: documents.map((document) => document.toJSON()) };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answered;
  try {
    answered = answer(JSON.parse(line));
  } catch (error) {
    answered = { refused: `${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answered)}\n`);
}
