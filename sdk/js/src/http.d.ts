import type { Failure, Json } from "./index.js";

/** Why there is no response. Uncaught, `unreachable` is `unavailable`, else it is `failed`. */
export class HttpError extends Failure {
  readonly tag: "failed" | "unavailable";
  /** It cannot be sent; the host does not allow it; or it got no response. */
  readonly code: "invalid" | "denied" | "unreachable";
}

/** What a request may say. */
export interface RequestInit {
  /** `GET`, or `POST` where there is a body. */
  method?: string;
  headers?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  /** The body: a text in UTF-8, or bytes. */
  body?: string | Uint8Array;
  /** A value as the body, in JSON. */
  json?: unknown;
}

/** A request as it is sent. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  /** In order, with names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array | undefined;
}

/** An answer as a test gives it. */
export interface Answer {
  /** 200 where absent. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** A value as the body, in JSON. */
  readonly json?: unknown;
}

/** An answer, read to its end. */
export class Response {
  readonly status: number;
  /** Whether the status is one of 200 to 299. */
  readonly ok: boolean;
  /** In order, with names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  /** The first header of this name, in any case. */
  header(name: string): string | undefined;
  /** The body. */
  bytes(): Uint8Array;
  /** The body as text. */
  text(): string;
  /** The body, read as JSON. */
  json<T = Json>(): T;
  /**
   * Itself, if `ok`.
   * @throws `Unavailable` for 429 and 5xx, where trying again may help; else `Failed`.
   */
  successful(): Response;
}

/**
 * Sends a request and reads the whole response, with any status. The call waits meanwhile, on both engines; there is nothing to
 * await. Redirects are not followed. The host adds an `Idempotency-Key` to whatever changes something.
 */
export function request(url: string, init?: RequestInit): Response;
