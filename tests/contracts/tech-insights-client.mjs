// Calls of the client of the community's Tech Insights plugin, one after another, each of them an
// array of method and arguments. Printed for each: `value` or `error`.
//
//   node tech-insights-client.mjs URL TOKEN CALLS

import { createRequire } from "node:module";

// The package's modules for Node are CommonJS.
const require = createRequire(import.meta.url);
const { TechInsightsClient } = require("@backstage-community/plugin-tech-insights-common/client");

const [url, token, calls] = process.argv.slice(2);
const client = new TechInsightsClient({
  discoveryApi: { getBaseUrl: async (plugin) => `${url}/api/${plugin}` },
  identityApi: { getCredentials: async () => ({ token }) },
});

const answers = [];
for (const [method, ...given] of JSON.parse(calls)) {
  try {
    answers.push({ value: await client[method](...given) });
  } catch (error) {
    answers.push({ error: { name: error.name, status: error.statusCode ?? error.response?.status } });
  }
}
console.log(JSON.stringify(answers));
