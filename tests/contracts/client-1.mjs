// The TypeScript client of generation 1, which knows only the handshake. See calling.mjs.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { given, report } from "./calling.mjs";

const { url, requestInit, calls } = given();
const client = new Client({ name: "contracts", version: "1" });
const transport = new StreamableHTTPClientTransport(url, { requestInit });
await client.connect(transport);
await report(client, transport.protocolVersion, calls);
