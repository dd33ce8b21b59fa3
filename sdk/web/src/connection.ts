/** The connection to one host: its address, the credentials, and the requests. */
import { type Clock, systemClock } from "./clock.js";
import { serialize } from "./json-text.js";
import { ToolgateError } from "./problem.js";
import type { Session } from "./wire.js";

/** The address of a host, and how to reach it. */
export interface ConnectionOptions {
  /** The host's address, such as `https://toolgate.example.com`. Default: the page's own origin. */
  url?: string;
  /**
   * A bearer token, or a function that returns one for each request. Without it, requests carry the session cookie of the
   * page's own origin, and requests that change something also carry the session's CSRF token.
   */
  token?: string | (() => string | Promise<string>);
  /** Default: the global `fetch`. */
  fetch?: typeof fetch;
  /** Default: the clock of the machine. */
  clock?: Clock;
}

/** The parts of a request beside its path. */
export interface Call {
  query?: Record<string, string | number | boolean | undefined>;
  /** Sent as JSON; a `RawJson` in it is sent as it is written. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const SAFE = new Set(["GET", "HEAD"]);

export class Connection {
  /** The host's address without a trailing slash. */
  readonly url: string;
  readonly clock: Clock;
  readonly #token: ConnectionOptions["token"];
  readonly #fetch: typeof fetch;
  #whose: string | undefined;
  #csrf: string | undefined;

  constructor(options: ConnectionOptions) {
    const base = options.url ?? globalThis.location?.origin ?? "";
    if (!/^https?:\/\//.test(base)) {
      throw new TypeError(`url: expected http:// or https:// and a host, and got ${JSON.stringify(base)}`);
    }
    this.url = base.replace(/\/+$/, "");
    this.clock = options.clock ?? systemClock;
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Whether requests are authenticated by a cookie. */
  get hasSession(): boolean {
    return this.#token === undefined;
  }

  /** Keeps or drops the session's CSRF token. */
  remember(session: Session | undefined): void {
    this.#csrf = session?.csrf ?? undefined;
    this.#whose = session === undefined ? undefined : whose(session);
  }

  /** Sends an authenticated request. Redirects are errors, so that credentials reach no other host. */
  readonly send = async (input: Request | string, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    // Another tab may have renewed the session, which changes the CSRF token. The host refuses the old one with 401 or 403.
    // The request is then sent once more with the new token.
    const isSafe = SAFE.has(request.method);
    const [word, whose] = [this.#csrf, this.#whose];
    const again = this.hasSession && !(isSafe && word === undefined) ? request.clone() : undefined;
    const response = await this.#sendOnce(request);
    if (again === undefined || response.status !== (isSafe ? 401 : 403)) return response;
    if (this.#whose === whose) await this.#renew();
    // The request belongs to the session that began it.
    const isMeant = this.#whose === whose && word !== this.#csrf;
    return isMeant ? this.#sendOnce(again) : response;
  };

  /** Sends a request and reads the JSON of the response. Throws `ToolgateError` if the host refuses. */
  async json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const response = await this.open(method, path, call);
    if (response.status === 204) return undefined as T;
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw ToolgateError.unreachable(error);
    }
  }

  /** Sends a request and returns a successful response. */
  async open(method: string, path: string, call: Call = {}): Promise<Response> {
    const headers = new Headers(call.headers);
    if (call.body !== undefined) headers.set("content-type", "application/json");
    const init: RequestInit = { method, headers };
    if (call.body !== undefined) init.body = serialize(call.body);
    if (call.signal !== undefined) init.signal = call.signal;
    const response = await this.send(this.url + path + queryOf(call.query), init);
    if (!response.ok) throw await ToolgateError.of(response);
    return response;
  }

  async #sendOnce(request: Request, isWhose = true): Promise<Response> {
    const headers = new Headers(request.headers);
    if (this.#token !== undefined) {
      const token = typeof this.#token === "function" ? await this.#token() : this.#token;
      headers.set("authorization", `Bearer ${token}`);
    } else if (isWhose) {
      // Requests that change something need the CSRF token. A browser can hold a log-in session and a link's session: there
      // the token also selects the session, for reads too.
      const isSafe = SAFE.has(request.method);
      if (!isSafe && this.#csrf === undefined && !isSignIn(request)) await this.#renew();
      if (this.#csrf !== undefined) headers.set("x-toolgate-csrf", this.#csrf);
    }
    const guarded = new Request(request, {
      headers,
      cache: "no-store",
      credentials: this.hasSession ? "same-origin" : "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    try {
      return await this.#fetch(guarded);
    } catch (error) {
      throw ToolgateError.unreachable(error, this.#isElsewhere);
    }
  }

  /** Whether this is a page of another origin than the host's. */
  get #isElsewhere(): boolean {
    const { location } = globalThis;
    return location !== undefined && new URL(this.url).origin !== location.origin;
  }

  /**
   * Asks the host for a new CSRF token, without sending the old one. Without a session the host has no token, and the request
   * itself fails.
   */
  async #renew(): Promise<void> {
    const response = await this.#sendOnce(new Request(`${this.url}/v1/session`), false);
    if (!response.ok) return;
    const session = (await response.json()) as Session;
    const isSame = (one: Session) => this.#whose === undefined || this.#whose === whose(one);
    const { link } = session;
    if (isSame(session)) this.remember(session);
    else if (link != null && isSame({ ...session, ...link })) this.remember({ ...session, ...link });
    // Otherwise another principal has logged in, or the link's session has ended. A request of one principal is never sent
    // as another.
  }
}

/** The principal of a session and its scope. */
function whose({ principal, only }: Session): string {
  return JSON.stringify([principal, only ?? null]);
}

/** A path with its parts percent-encoded: path`/v1/suspensions/${id}`. */
export function path(texts: TemplateStringsArray, ...parts: string[]): string {
  return texts.reduce((made, text, index) => made + encodeURIComponent(parts[index - 1] ?? "") + text);
}

function isSignIn(request: Request): boolean {
  return /\/v1\/session(\/link)?$/.test(new URL(request.url).pathname) && request.method === "POST";
}

function queryOf(query: Call["query"]): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) search.set(name, String(value));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
