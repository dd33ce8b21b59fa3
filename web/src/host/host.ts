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

  /** The session of the cookie, or nothing. */
  async session(): Promise<Session | undefined> {
    try {
      return await this.toolgate.session();
    } catch (error) {
      if (error instanceof ToolgateError && error.status === 401) return undefined;
      throw error;
    }
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
