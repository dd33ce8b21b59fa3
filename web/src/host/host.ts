// The only way to the host: the client of @toolgate/web with the session cookie. The console also keeps numbers as they were
// written, and notices the end of a session in every response.

import { type Session, Toolgate, ToolgateError } from "@toolgate/web";
import { parseExact } from "../text/json";

export type Query = Record<string, string | number | boolean | undefined>;

export interface Request {
  query?: Query;
  /** JSON. A `RawJson` in it is sent as it was written. */
  body?: unknown;
  signal?: AbortSignal;
}

export class Host {
  /** The client for the elements, streams and pending store of @toolgate/web. */
  readonly toolgate: Toolgate;
  /** Called when the host no longer knows the session. */
  onSignedOut: () => void = () => {};

  constructor() {
    this.toolgate = new Toolgate({
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        const place = new URL(input instanceof Request ? input.url : String(input), location.origin).pathname;
        // A request for the session itself gets the answer as a result.
        if (response.status === 401 && !place.startsWith("/v1/session")) this.onSignedOut();
        return response;
      },
    });
  }

  /** Sends a request. Throws `ToolgateError`, or `AbortError` if the signal aborts it. */
  get<T>(path: string, request: Request = {}): Promise<T> {
    return this.#ask<T>("GET", path, request);
  }

  post<T>(path: string, request: Request = {}): Promise<T> {
    return this.#ask<T>("POST", path, request);
  }

  /**
   * The current session, if there is one. A browser can hold the session of a one-time link beside that of a log-in. The link's
   * session counts on the page of its suspension, the log-in's everywhere else. Requests use it only after `act`.
   */
  async session(about?: string, signal?: AbortSignal): Promise<Session | undefined> {
    // Separate clients, so that the question does not carry the CSRF token of the previous session.
    let session = await present(new Toolgate(), signal);
    const link = session?.link;
    if (link != null && link.only === about) {
      const byLink = new Toolgate();
      byLink.connection.remember({ ...link, roles: [], groups: [] });
      // The link's session can end meanwhile.
      session = (await present(byLink, signal)) ?? session;
    }
    signal?.throwIfAborted();
    return session;
  }

  /** Sends all further requests in this session. */
  act(session: Session | undefined): void {
    this.toolgate.connection.remember(session);
  }

  async #ask<T>(method: string, path: string, { query, body, signal }: Request): Promise<T> {
    const response = await this.toolgate.connection.open(method, path, {
      ...(query && { query: Object.fromEntries(Object.entries(query).filter(([, value]) => value !== "")) }),
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    });
    return parseExact(await response.text()) as T;
  }
}

/** The session of a client's requests, if there is one. */
async function present(toolgate: Toolgate, signal?: AbortSignal): Promise<Session | undefined> {
  try {
    return await toolgate.session(signal);
  } catch (error) {
    if (error instanceof ToolgateError && error.status === 401) return undefined;
    throw error;
  }
}
