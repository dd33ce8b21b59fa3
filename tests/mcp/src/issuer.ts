// A real authorization server (`oidc-provider`) on a free port of this machine, with one client that has a secret.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/** The client that the server knows. */
export const CLIENT = { id: "agent", secret: "a-secret-of-the-tests" };

/** The scope that lets its holder call tools, and one that means nothing to the host. */
export const CALL = "tools:call";
export const OTHER = "other";

export class Issuer {
  readonly url: string;
  readonly #server: Server;

  private constructor(url: string, server: Server) {
    this.url = url;
    this.#server = server;
  }

  /** Starts the server. Its access tokens are JWTs for the resource that a client names, and live for `seconds`. */
  static async start(seconds = 300): Promise<Issuer> {
    let answer: RequestListener = (_, response) => response.writeHead(503).end();
    const server = createServer((request, response) => answer(request, response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
    const resource = (_: unknown, audience: string) => ({
      scope: `${CALL} ${OTHER}`,
      audience,
      accessTokenTTL: seconds,
      accessTokenFormat: "jwt",
      jwt: { sign: { alg: "ES256" } },
    });
    const provider = new Provider(url, {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          grant_types: ["client_credentials"],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: "ES256",
        },
      ],
      jwks: { keys: [{ ...key, kid: "tests", use: "sig", alg: "ES256" }] },
      scopes: [CALL, OTHER],
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: { enabled: true, getResourceServerInfo: resource },
      },
    });
    answer = provider.callback();
    return new Issuer(url, server);
  }

  /** An access token for a resource. */
  async token(resource: string, scope: string): Promise<string> {
    const basic = Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString("base64");
    const answered = await fetch(`${this.url}/token`, {
      method: "POST",
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ grant_type: "client_credentials", resource, scope }),
    });
    const body = (await answered.json()) as { access_token?: string };
    if (body.access_token === undefined) throw new Error(`no token: ${JSON.stringify(body)}`);
    return body.access_token;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
