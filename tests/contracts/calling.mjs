// What both generations of the TypeScript client are asked to do, and how it is reported.

// Lists the tools, makes each call, then one of a tool that is not there. The clients throw for a
// result that does not fit the outputSchema which they were listed.
export async function report(client, version, calls) {
  const { tools } = await client.listTools();
  const results = [];
  for (const [name, args] of calls) {
    results.push(await client.callTool({ name, arguments: args }));
  }
  const refused = await client
    .callTool({ name: "get-everything", arguments: {} })
    .catch((error) => error.code);
  await client.close();
  console.log(JSON.stringify({ version, tools, results, refused }));
}

// The arguments of the command: an address, a token, a mode, and the calls as JSON.
export function given() {
  const [url, token, mode, calls] = process.argv.slice(2);
  return {
    url: new URL(url),
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
    mode,
    calls: JSON.parse(calls),
  };
}
