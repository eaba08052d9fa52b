// A real OpenID Connect provider on loopback, at which anybody signs in under any name.
//
// node openid.mjs REDIRECT_URI SECRET
//
// It has two clients, which both have to use PKCE: `confidential` with the secret, whose tokens are
// signed with RS256, and `public` without one, whose tokens are signed with ES256. It prints its
// address, and serves until it is stopped.

import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

import Provider from "oidc-provider";

const [redirectUri, secret] = process.argv.slice(2);

const key = (alg, type, options) => {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: "jwk" }), alg, use: "sig" };
};

const client = (id, more) => ({
  client_id: id,
  redirect_uris: [redirectUri],
  grant_types: ["authorization_code"],
  response_types: ["code"],
  ...more,
});

const account = (ctx, id) => ({
  accountId: id,
  claims: () => ({
    sub: id,
    name: `${id} of the tests`,
    preferred_username: id,
    email: `${id}@example.com`,
    email_verified: true,
    groups: ["everybody", `friends-of-${id}`],
  }),
});

const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    client("confidential", { client_secret: secret, id_token_signed_response_alg: "RS256" }),
    client("public", { token_endpoint_auth_method: "none", id_token_signed_response_alg: "ES256" }),
  ],
  claims: {
    openid: ["sub"],
    profile: ["name", "preferred_username", "groups"],
    email: ["email", "email_verified"],
  },
  cookies: { keys: ["a key of tests"] },
  findAccount: account,
  jwks: {
    keys: [
      key("RS256", "rsa", { modulusLength: 2048 }),
      key("ES256", "ec", { namedCurve: "P-256" }),
    ],
  },
  pkce: { required: () => true },
});

server.on("request", provider.callback());
console.log(issuer);
