// How a TypeScript client signs in with OAuth: it keeps what it gets in memory, prints the address
// for a browser, and is called back at a port of loopback. See oauth_client.py for the arguments.
import { once } from "node:events";
import { createServer } from "node:http";

const how = process.argv[3];
let called;
const answer = new Promise((resolve) => (called = resolve));
const server = createServer((request, response) => {
  const url = new URL(request.url, "http://127.0.0.1");
  if (url.pathname === "/callback") called(url.searchParams);
  response.setHeader("content-type", "text/html");
  response.end("<title>Connected</title><h1>Connected</h1>");
});
server.listen(0, "127.0.0.1");
await once(server, "listening");

const redirectUrl = `http://127.0.0.1:${server.address().port}/callback`;
const kept = {};
if (how !== "registration" && !how.startsWith("https://")) kept.client = { client_id: how };

export const url = new URL(process.argv[2]);

export const authProvider = {
  redirectUrl,
  clientMetadataUrl: how.startsWith("https://") ? how : undefined,
  clientMetadata: {
    client_name: "TypeScript client",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => "a state of the test",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  redirectToAuthorization: (address) => console.log(address.href),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (discovery) => void (kept.discovery = discovery),
};

// Connects twice: the first time, the person is asked. `finish` gets what the client is told.
export async function report(connected, finish) {
  await connected().then(
    () => Promise.reject(new Error("nobody was asked")),
    (error) => {
      if (error.name !== "UnauthorizedError" && !/unauthorized/i.test(String(error))) throw error;
    },
  );
  const told = await answer;
  await finish(told);
  const client = await connected();
  const { tools } = await client.listTools();
  await client.callTool({ name: "get-data-source-discovery", arguments: {} });
  await client.close();
  server.close();
  console.log(JSON.stringify({ tools: tools.length, scope: kept.tokens.scope }));
  process.exit(0);
}
