// The TypeScript client of generation 2, in the mode given: legacy, auto, or a modern revision that
// is insisted on. See calling.mjs.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { given, report } from "./calling.mjs";

const { url, requestInit, mode, calls } = given();
const versionNegotiation = { mode: /^\d/.test(mode) ? { pin: mode } : mode };
const client = new Client({ name: "contracts", version: "1" }, { versionNegotiation });
await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
await report(client, client.getNegotiatedProtocolVersion(), calls);
