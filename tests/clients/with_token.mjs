// Hands requests on to a server and adds the token, for clients that can be told an address and nothing else.
// usage: node with_token.mjs ADDRESS TOKEN; prints the port that it listens at.
import http from "node:http";

const target = new URL(process.argv[2]);
const own = () => `127.0.0.1:${server.address().port}`;
const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${process.argv[3]}` };
  // Only the name of this one is a name of that one; any other is handed on, to be refused.
  const named = (host) => (host === own() || host === own().replace("127.0.0.1", "localhost") ? target.host : host);
  headers.host = named(headers.host);
  if (headers.origin) headers.origin = headers.origin.replace(/^http:\/\/(.*)$/, (_, host) => `http://${named(host)}`);
  const onward = http.request(
    { host: target.hostname, port: target.port, method: request.method, path: request.url, headers, setHost: false },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    },
  );
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
