/** One host: where it is, who asks, and how a request gets there. */
import { type Clock, systemClock } from "./clock.js";
import { serialize } from "./json-text.js";
import { ToolgateError } from "./problem.js";
import type { Session } from "./wire.js";

export interface ConnectionOptions {
  /** Where the host is, `https://toolgate.example.com`. The page's own origin if absent. */
  url?: string;
  /**
   * A bearer token, or what gives one for each request. Without it, the session cookie of the page's own origin says who
   * asks, and requests that change something carry the session's CSRF word.
   */
  token?: string | (() => string | Promise<string>);
  /** Instead of the global one. */
  fetch?: typeof fetch;
  /** Instead of the machine's. */
  clock?: Clock;
}

/** What a request says beside its path. */
export interface Call {
  query?: Record<string, string | number | boolean | undefined>;
  /** Sent as JSON; a `RawJson` in it is sent as it is written. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const SAFE = new Set(["GET", "HEAD"]);

export class Connection {
  /** The host's address without a slash at its end. */
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

  /** Whether a cookie says who asks. */
  get hasSession(): boolean {
    return this.#token === undefined;
  }

  /** Remembers the word that goes with requests that change something, or forgets it. */
  remember(session: Session | undefined): void {
    this.#csrf = session?.csrf ?? undefined;
    this.#whose = session === undefined ? undefined : whose(session);
  }

  /** A request with the marks of who asks. Not sent to any other place: redirects are errors. */
  readonly send = async (input: Request | string, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    // A session that another tab has renewed has a new word; the request is made again with it, once. Nothing is read with a
    // word that counts no more (401), and nothing changed (403).
    const isSafe = SAFE.has(request.method);
    const [word, whose] = [this.#csrf, this.#whose];
    const again = this.hasSession && !(isSafe && word === undefined) ? request.clone() : undefined;
    const response = await this.#sendOnce(request);
    if (again === undefined || response.status !== (isSafe ? 401 : 403)) return response;
    if (this.#whose === whose) await this.#renew();
    // Whoever is meant by now, it was in this name that it was begun.
    const isMeant = this.#whose === whose && word !== this.#csrf;
    return isMeant ? this.#sendOnce(again) : response;
  };

  /** Makes a request and reads its JSON. Throws a `ToolgateError` where the host refuses. */
  async json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const response = await this.open(method, path, call);
    if (response.status === 204) return undefined as T;
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw ToolgateError.unreachable(error);
    }
  }

  /** Makes a request and hands over the response, if it is a success. */
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
      // Only what changes something needs the word. In a browser with a log-in and a link's session it also says which of
      // the two is meant, when reading as well.
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

  /** Whether this is a page, and one of another origin than the host's. */
  get #isElsewhere(): boolean {
    const { location } = globalThis;
    return location !== undefined && new URL(this.url).origin !== location.origin;
  }

  /**
   * Asks for the session's word, without the one that counts no more. Without a session there is none, and the request itself
   * says so.
   */
  async #renew(): Promise<void> {
    const response = await this.#sendOnce(new Request(`${this.url}/v1/session`), false);
    if (!response.ok) return;
    const session = (await response.json()) as Session;
    const isSame = (one: Session) => this.#whose === undefined || this.#whose === whose(one);
    const { link } = session;
    if (isSame(session)) this.remember(session);
    else if (link != null && isSame({ ...session, ...link })) this.remember({ ...session, ...link });
    // Else somebody else has logged in with this browser meanwhile, or what a link opened is over. What was begun in one name
    // is neither sent nor read in another's.
  }
}

/** Whom a session stands for, and for what. */
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
