// The one way to the host: the client of @toolgate/web with the session's cookie. What the console adds is that numbers stay
// as they were written, and that the end of a session is noticed wherever it shows.

import { type Session, Toolgate, ToolgateError } from "@toolgate/web";
import { parseExact } from "../text/json";

export type Query = Record<string, string | number | boolean | undefined>;

export interface Request {
  query?: Query;
  /** JSON; a `RawJson` in it is sent as it is written. */
  body?: unknown;
  signal?: AbortSignal;
}

export class Host {
  /** For what @toolgate/web brings along: its elements, its streams, its store of what waits. */
  readonly toolgate: Toolgate;
  /** Told when the host no longer knows the session. */
  onSignedOut: () => void = () => {};

  constructor() {
    this.toolgate = new Toolgate({
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        const place = new URL(input instanceof Request ? input.url : String(input), location.origin).pathname;
        // Who asks for the session itself wants to know, and is told by the answer.
        if (response.status === 401 && !place.startsWith("/v1/session")) this.onSignedOut();
        return response;
      },
    });
  }

  /** Asks for something. Throws `ToolgateError`, or an `AbortError` where the signal says so. */
  get<T>(path: string, request: Request = {}): Promise<T> {
    return this.#ask<T>("GET", path, request);
  }

  post<T>(path: string, request: Request = {}): Promise<T> {
    return this.#ask<T>("POST", path, request);
  }

  /**
   * Who is here, or nothing. A browser can have the session of a one-time link beside that of a log-in: on the page about the
   * link's suspension it is the link's that counts, and everywhere else the log-in's. Requests are made in its name only once
   * `act` was told so.
   */
  async session(about?: string, signal?: AbortSignal): Promise<Session | undefined> {
    // By clients of their own: who is here is asked without the word of who was here.
    let session = await present(new Toolgate(), signal);
    const link = session?.link;
    if (link != null && link.only === about) {
      const byLink = new Toolgate();
      byLink.connection.remember({ ...link, roles: [], groups: [] });
      // The link's can end meanwhile.
      session = (await present(byLink, signal)) ?? session;
    }
    signal?.throwIfAborted();
    return session;
  }

  /** From now on requests are made in this name. */
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

/** The session that a client's requests belong to, or nothing. */
async function present(toolgate: Toolgate, signal?: AbortSignal): Promise<Session | undefined> {
  try {
    return await toolgate.session(signal);
  } catch (error) {
    if (error instanceof ToolgateError && error.status === 401) return undefined;
    throw error;
  }
}
