// Requests over HTTP: wasi:http of the host, or the responses of a test.

import { send } from "#http";
import { Failed, Failure, Unavailable } from "./failure.js";
import { fromUtf8, toUtf8 } from "./text.js";

const SENTENCES = {
  invalid: "the request cannot be sent",
  denied: "the host does not allow the request",
  unreachable: "the request got no response",
};

export class HttpError extends Failure {
  /**
   * @param {keyof typeof SENTENCES} code
   * @param {string} why
   */
  constructor(code, why) {
    super(`${SENTENCES[code]}: ${why}`);
    this.code = code;
    /** @type {"failed" | "unavailable"} */
    this.tag = code === "unreachable" ? "unavailable" : "failed";
  }
}

export class Response {
  #body;

  /** @param {{ status: number, headers: [string, string][], body: Uint8Array }} answer */
  constructor({ status, headers, body }) {
    this.status = status;
    this.headers = headers;
    this.ok = status >= 200 && status <= 299;
    this.#body = body;
  }

  /** @param {string} name */
  header(name) {
    return this.headers.find(([known]) => known === name.toLowerCase())?.[1];
  }

  bytes() {
    return this.#body;
  }

  text() {
    return fromUtf8(this.#body);
  }

  json() {
    try {
      return JSON.parse(this.text());
    } catch (error) {
      throw new Failed("the server's answer is not JSON", { cause: error });
    }
  }

  successful() {
    if (this.ok) return this;
    const message = `the server answered with status ${this.status}`;
    throw this.status === 429 || this.status >= 500 ? new Unavailable(message) : new Failed(message);
  }
}

/**
 * @param {string} url
 * @param {import("./http.d.ts").RequestInit} [init]
 */
export function request(url, init = {}) {
  const body = init.json === undefined ? init.body : JSON.stringify(init.json);
  const written = init.headers ?? [];
  const headers = (Symbol.iterator in written ? [...written] : Object.entries(written)).map(
    ([name, value]) => /** @type {[string, string]} */ ([name.toLowerCase(), String(value)]),
  );
  if (init.json !== undefined && !headers.some(([name]) => name === "content-type")) {
    headers.push(["content-type", "application/json"]);
  }
  const method = init.method ?? (body === undefined ? "GET" : "POST");
  try {
    const answer = send({
      method,
      url: String(url),
      headers,
      body: typeof body === "string" ? toUtf8(body) : body,
    });
    return new Response(answer);
  } catch (error) {
    const { refused, why } = /** @type {{ refused?: keyof typeof SENTENCES, why?: string }} */ (error ?? {});
    throw refused ? new HttpError(refused, String(why)) : error;
  }
}
