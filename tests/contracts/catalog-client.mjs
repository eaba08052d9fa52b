// Calls of @backstage/catalog-client, one after another, each of them an array of method and
// arguments. Printed for each: `value` or `error`, and the `requests` that the client made for it.
//
//   node catalog-client.mjs URL TOKEN FILE
//
// The file holds `{"calls": [["getEntities", {…}], …], "remember": true}`. With `remember`, there
// is also `memory`: the value that the package's own catalog in memory gives when it holds the same
// entities.
//
// Beside the client's methods there are `walkQuery`, which follows the cursors to the last page and
// back to the first, and `walkEntities`, which follows the links to the next page.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// The package's modules for Node are CommonJS.
const require = createRequire(import.meta.url);
const { CatalogClient, CATALOG_FILTER_EXISTS } = require("@backstage/catalog-client");
const { InMemoryCatalogClient } = require("@backstage/catalog-client/testUtils");

const [url, token, file] = process.argv.slice(2);
const { calls, remember } = JSON.parse(readFileSync(file, "utf8"), (_, value) =>
  value === "CATALOG_FILTER_EXISTS" ? CATALOG_FILTER_EXISTS : value,
);

let requests = [];
let link = null;

async function watched(address, init) {
  const response = await fetch(address, init);
  requests.push(`${init?.method ?? "GET"} ${new URL(address).pathname}`);
  link = response.headers.get("link");
  return response;
}

const client = new CatalogClient({
  discoveryApi: { getBaseUrl: async (plugin) => `${url}/api/${plugin}` },
  fetchApi: { fetch: watched },
});

async function walkQuery(from, request) {
  const { limit, fields } = request;
  const there = [await from.queryEntities(request, { token })];
  while (there.at(-1).pageInfo.nextCursor) {
    const cursor = there.at(-1).pageInfo.nextCursor;
    there.push(await from.queryEntities({ cursor, limit, fields }, { token }));
  }
  const back = [there.at(-1)];
  while (back.at(-1).pageInfo.prevCursor) {
    const cursor = back.at(-1).pageInfo.prevCursor;
    back.push(await from.queryEntities({ cursor, limit, fields }, { token }));
  }
  return { there, back };
}

async function walkEntities(from, request) {
  const pages = [(await from.getEntities(request, { token })).items];
  while (link) {
    const after = new URL(/<(.*)>; rel="next"/.exec(link)[1], url).searchParams.get("after");
    pages.push((await from.getEntities({ ...request, after }, { token })).items);
  }
  return pages;
}

async function value(from, method, given) {
  if (method === "walkQuery") {
    return walkQuery(from, ...given);
  }
  if (method === "walkEntities") {
    return walkEntities(from, ...given);
  }
  const answer = from[method](...given, { token });
  return answer[Symbol.asyncIterator] ? Array.fromAsync(answer) : answer;
}

async function made([method, ...given]) {
  requests = [];
  try {
    return { value: await value(client, method, given), requests };
  } catch (error) {
    const { name, message, statusCode, body } = error;
    return { error: { name, message, status: statusCode, answer: body }, requests };
  }
}

const answers = [];
for (const call of calls) {
  answers.push(await made(call));
}

if (remember) {
  const entities = (await Array.fromAsync(client.streamEntities({}, { token }))).flat();
  const memory = new InMemoryCatalogClient({ entities });
  for (const [position, [method, ...given]] of calls.entries()) {
    answers[position].memory = await value(memory, method, given);
  }
}

// JSON has no undefined, which some answers hold for an entity that is not there.
console.log(
  JSON.stringify(answers, function (key, held) {
    const listed = Array.isArray(this) || key === "value";
    return held === undefined && listed ? "undefined" : held;
  }),
);
