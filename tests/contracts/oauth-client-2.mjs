// The TypeScript client of generation 2 signs in with OAuth: see oauth.mjs.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { authProvider, report, url } from "./oauth.mjs";

let transport;

async function connected() {
  transport = new StreamableHTTPClientTransport(url, { authProvider });
  const client = new Client(
    { name: "contracts", version: "1" },
    { versionNegotiation: { mode: "auto" } },
  );
  await client.connect(transport);
  return client;
}

// It checks the issuer that it is told.
await report(connected, (told) => transport.finishAuth(told));
