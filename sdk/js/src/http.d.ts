import type { Failure, Json } from "./index.js";

/** Why a request got no response. Uncaught, `unreachable` becomes `unavailable`, and the others become `failed`. */
export class HttpError extends Failure {
  readonly tag: "failed" | "unavailable";
  /** The request is invalid, the host does not allow it, or it got no response. */
  readonly code: "invalid" | "denied" | "unreachable";
}

/** The options of a request. */
export interface RequestInit {
  /** By default `GET`, or `POST` if there is a body. */
  method?: string;
  headers?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  /** The body: a text in UTF-8, or bytes. */
  body?: string | Uint8Array;
  /** A value to send as JSON. */
  json?: unknown;
}

/** A request to send. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  /** In order, with names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array | undefined;
}

/** A response of a test. */
export interface Answer {
  /** 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** A value to send as JSON. */
  readonly json?: unknown;
}

/** A complete response. */
export class Response {
  readonly status: number;
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  /** In order, with names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  /** The first header with this name, in upper or lower case. */
  header(name: string): string | undefined;
  /** The body. */
  bytes(): Uint8Array;
  /** The body as text. */
  text(): string;
  /** Reads the body as JSON. */
  json<T = Json>(): T;
  /**
   * Returns the response if it is `ok`.
   * @throws `Unavailable` for 429 and 5xx, for which trying again may help. Otherwise `Failed`.
   */
  successful(): Response;
}

/**
 * Sends a request and reads the whole response. Any status is a response, not an error. The call waits for it on both
 * engines, without `await`. Redirects are not followed. The host adds an `Idempotency-Key` to every request that may
 * change something.
 */
export function request(url: string, init?: RequestInit): Response;
