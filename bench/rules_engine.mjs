// json-rules-engine as a peer: a question in JSON a line on stdin, with `conditions` of one rule and
// `facts`, a list of objects. On stdout, a line: `passed`, and the seconds of CPU that all of them took
// an engine made once (`once`), and one made for each of them (`each`), as the community's plugin does.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../tests/contracts/package.json", import.meta.url));
const { Engine } = require("json-rules-engine");

const made = (conditions) => new Engine([{ conditions, event: { type: "passed" } }]);

async function measured(facts, engineFor) {
  let passed = 0;
  const before = process.cpuUsage();
  for (const one of facts) {
    const { events } = await engineFor().run(one);
    passed += events.length;
  }
  const { user, system } = process.cpuUsage(before);
  return { passed, seconds: (user + system) / 1e6 };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { conditions, facts } = JSON.parse(line);
  const engine = made(conditions);
  const once = await measured(facts, () => engine);
  const each = await measured(facts, () => made(conditions));
  const answer = { passed: once.passed, once: once.seconds, each: each.seconds };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
