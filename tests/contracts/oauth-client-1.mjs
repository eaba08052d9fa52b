// The TypeScript client of generation 1 signs in with OAuth: see oauth.mjs.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { authProvider, report, url } from "./oauth.mjs";

let transport;

async function connected() {
  transport = new StreamableHTTPClientTransport(url, { authProvider });
  const client = new Client({ name: "contracts", version: "1" });
  await client.connect(transport);
  return client;
}

await report(connected, (told) => transport.finishAuth(told.get("code")));
