// A proxy on loopback that adds a token to each request and changes nothing else: Host, Origin and
// every other header, bodies and streams pass as they are. Prints its address once it listens.
// Usage: node proxy.mjs ADDRESS TOKEN
import http from "node:http";

const [address, token] = process.argv.slice(2);
const { hostname, port } = new URL(address);

const server = http.createServer((request, response) => {
  const headers = [...request.rawHeaders, "Authorization", `Bearer ${token}`];
  const { method, url: path } = request;
  const onward = http.request({ hostname, port, method, path, headers, setHost: false });
  onward.on("response", (answer) => {
    response.writeHead(answer.statusCode, answer.statusMessage, answer.rawHeaders);
    answer.pipe(response);
  });
  onward.on("error", (error) => response.destroy(error));
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});

server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
