// What the catalog of Backstage reads in a file: a text in JSON a line on stdin; on stdout, a line,
// its results in their order: {"entity": …} as its policies leave it, {"refused": message} where
// one of them refuses it, or {"error": message} for a document that is none.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The packages' modules for Node are CommonJS.
const require = createRequire(import.meta.url);
const model = require("@backstage/catalog-model");
const { parseEntityYaml } = require("@backstage/plugin-catalog-node");

const location = { type: "url", target: "https://example.com/catalog-info.yaml" };
const policy = model.EntityPolicies.allOf([
  new model.SchemaValidEntityPolicy(),
  new model.DefaultNamespaceEntityPolicy(),
  new model.NoForeignRootFieldsEntityPolicy(),
  new model.FieldFormatEntityPolicy(model.makeValidator()),
]);

async function result(emitted) {
  if (emitted.type === "error") {
    return { error: emitted.error.message };
  }
  try {
    return { entity: await policy.enforce(emitted.entity) };
  } catch (error) {
    return { refused: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const results = await Promise.all([...parseEntityYaml(JSON.parse(line), location)].map(result));
  process.stdout.write(`${JSON.stringify(results)}\n`);
}
