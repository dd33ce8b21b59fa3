// Requests over HTTP, from plugins on StarlingMonkey that request them with `[[wants.http]]`. The operator decides which
// addresses a plugin may reach. For a key or token, send the placeholder of `@toolgate/sdk/config`. The host replaces it with
// the secret.

import type { Failure, Json } from "./index.js";

/** Why a request got no response. Uncaught, `unreachable` becomes `unavailable`, and the others become `failed`. */
export class HttpError extends Failure {
  /** `unavailable` for `unreachable`, otherwise `failed`. */
  readonly tag: "failed" | "unavailable";
  /**
   * The request is invalid, the host does not allow it, or it got no response. If it is not allowed, the call's log names the
   * missing grant (`toolgate logs`).
   */
  readonly code: "invalid" | "denied" | "unreachable";
}

/** The options of a request. */
export interface RequestInit {
  /** By default `GET`, or `POST` if there is a body. */
  method?: string;
  /** The headers: by name, or in order. */
  headers?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  /** The body: a text in UTF-8, or bytes. */
  body?: string | Uint8Array;
  /** A value to send as JSON. */
  json?: unknown;
}

/** A request to send. */
export interface Sent {
  /** The method, in upper case. */
  readonly method: string;
  /** The whole URL, with its query. */
  readonly url: string;
  /** In order, with names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  /** The body, if there is one. */
  readonly body: Uint8Array | undefined;
}

/** A response of a test. */
export interface Answer {
  /** 200 by default. */
  readonly status?: number;
  /** The headers by name. By default none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The body: a text in UTF-8, or bytes. By default empty. */
  readonly body?: string | Uint8Array;
  /** A value to send as JSON. */
  readonly json?: unknown;
}

/** A complete response. */
export class Response {
  /** The status. */
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
  /**
   * Reads the body as JSON.
   * @throws `Failed`, if it is not JSON.
   */
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
 * @throws `HttpError`, if there is no response. Its `code` says why. `TypeError`, if the value for `json` is a `bigint` or
 * contains itself.
 */
export function request(url: string, init?: RequestInit): Response;
