// The network of a real call: wasi:http, interfaces `types` and `outgoing-handler`. `pollable.block` waits in the host.

import { handle } from "wasi:http/outgoing-handler";
import { Fields, IncomingBody, OutgoingBody, OutgoingRequest } from "wasi:http/types";
import { fromUtf8, toUtf8 } from "../text.js";
import { int64, none, payload } from "./engine.js";

/** The bytes of one read or write. */
const PIECE = 4096;

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/**
 * @param {import("../http.d.ts").Sent} request
 * @returns {{ status: number, headers: [string, string][], body: Uint8Array }}
 */
export function send(request) {
  const outgoing = open(request);
  const body = request.body && invalidUnless("it can have no body", () => outgoing.body());
  const pending = answered(() => handle(outgoing, none(undefined)));
  if (body) {
    try {
      write(body, /** @type {Uint8Array} */ (request.body));
      OutgoingBody.finish(body, none(undefined));
    } catch {
      // A server may respond before it has read everything. Its response is more useful than the failed write.
    }
  }
  const ready = pending.subscribe();
  ready.block();
  dispose(ready);
  return read(answered(() => unwrap(pending.get())));
}

/** @param {import("../http.d.ts").Sent} request */
function open({ method, url, headers, body }) {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([^#]*)/i.exec(url);
  if (!match) throw { refused: "invalid", why: `no scheme and host in the URL ${url}` };
  const [, scheme = "", authority, rest = ""] = match;
  const fields = new Fields();
  const measured = headers.some(([name]) => name.toLowerCase() === "content-length");
  // Sends the length, because not every server accepts chunked bodies.
  if (body && !measured) fields.append("content-length", toUtf8(String(body.length)));
  for (const [name, value] of headers)
    invalidUnless(`the header ${name}`, () => fields.append(name, toUtf8(value)));
  const outgoing = new OutgoingRequest(fields);
  const known = scheme.toLowerCase();
  const schemes = { http: { tag: "HTTP" }, https: { tag: "HTTPS" } };
  const wanted = METHODS.includes(method) ? { tag: method.toLowerCase() } : { tag: "other", val: method };
  invalidUnless(`the method ${method}`, () => outgoing.setMethod(wanted));
  invalidUnless(`the scheme ${known}`, () =>
    outgoing.setScheme(schemes[/** @type {"http"} */ (known)] ?? { tag: "other", val: known }),
  );
  invalidUnless(`the host ${authority}`, () => outgoing.setAuthority(authority));
  invalidUnless(`the path ${rest}`, () =>
    outgoing.setPathWithQuery(rest.startsWith("/") ? rest : `/${rest}`),
  );
  return outgoing;
}

/**
 * @param {any} body
 * @param {Uint8Array} bytes
 */
function write(body, bytes) {
  const stream = body.write();
  for (let at = 0; at < bytes.length; at += PIECE)
    stream.blockingWriteAndFlush(bytes.subarray(at, at + PIECE));
  // A body can be finished only after its stream was released.
  dispose(stream);
}

/** @param {any} answer */
function read(answer) {
  const fields = answer.headers();
  const headers = fields
    .entries()
    .map((/** @type {[string, Uint8Array]} */ [name, value]) => [
      name.toLowerCase(),
      fromUtf8(Uint8Array.from(value)),
    ]);
  dispose(fields);
  const status = answer.status();
  const body = answer.consume();
  const stream = body.stream();
  const pieces = [];
  for (;;) {
    try {
      pieces.push(Uint8Array.from(stream.blockingRead(int64(PIECE))));
    } catch (thrown) {
      const { tag, val } = payload(thrown);
      if (tag === "closed") break;
      throw { refused: "unreachable", why: `the response broke off: ${val?.toDebugString?.() ?? tag}` };
    }
  }
  dispose(stream);
  dispose(IncomingBody.finish(body));
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return { status, headers, body: whole };
}

/**
 * Unwraps the results inside the option that `get` returns. The engines represent them as `{ tag: "ok" | "err", val }`.
 * @param {any} result
 */
function unwrap(result) {
  let inner = result;
  while (inner?.tag === "ok") inner = inner.val;
  if (inner?.tag === "err") throw inner.val ?? { tag: "internal-error", val: "the answer was taken before" };
  return inner;
}

/**
 * @template T
 * @param {() => T} step
 */
function answered(step) {
  try {
    return step();
  } catch (thrown) {
    const { tag, val } = payload(thrown);
    if (tag === "HTTP-request-denied" || tag === "destination-IP-prohibited") {
      throw {
        refused: "denied",
        why: "no grant allows it; the call's log names the missing grant (toolgate logs)",
      };
    }
    const why = val === undefined || val === null ? tag : `${tag} ${JSON.stringify(val)}`;
    throw { refused: /^HTTP-request-(URI|method)-invalid$/.test(tag) ? "invalid" : "unreachable", why };
  }
}

/**
 * @template T
 * @param {string} what
 * @param {() => T} step
 */
function invalidUnless(what, step) {
  try {
    return step();
  } catch {
    throw { refused: "invalid", why: what };
  }
}

/** @param {any} resource */
function dispose(resource) {
  const free = Symbol.dispose && resource?.[Symbol.dispose];
  if (free) free.call(resource);
}
