// Adds a bearer token to each request. The conformance suite cannot send one.
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export class TokenProxy {
  /** The host behind it. */
  target = "";
  token = "";
  readonly #server: Server;

  private constructor() {
    // Everything else stays, also `Host` and `Origin`: the host behind it checks them.
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (from, to) => {
      const headers = { ...from.headers, authorization: `Bearer ${this.token}` };
      const onward = request(this.target + from.url, { method: from.method ?? "GET", headers }, (answer) => {
        to.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(to);
      });
      onward.on("error", () => to.destroy());
      to.on("close", () => onward.destroy());
      from.pipe(onward);
    });
  }

  /** A proxy on a free port. */
  static async listen(): Promise<TokenProxy> {
    const proxy = new TokenProxy();
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
