// What json-rules-engine says of facts: a question in JSON a line on stdin, with `conditions`,
// `shared` conditions by name, `facts` (a list of objects) and `guess`, whether facts may be missing.
// On stdout, a line: for each of the facts "pass", "fail", or "throws".

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { Engine } = createRequire(import.meta.url)("json-rules-engine");

async function answers({ conditions, shared, facts, guess }) {
  const engine = new Engine([{ conditions, event: { type: "passed" } }], {
    allowUndefinedFacts: guess,
  });
  for (const [name, condition] of Object.entries(shared)) {
    engine.setCondition(name, condition);
  }
  const found = [];
  for (const one of facts) {
    try {
      const { events } = await engine.run(one);
      found.push(events.length > 0 ? "pass" : "fail");
    } catch {
      found.push("throws");
    }
  }
  return found;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await answers(JSON.parse(line)))}\n`);
}
