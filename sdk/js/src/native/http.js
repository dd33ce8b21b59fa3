// The network of a test: a function that returns the responses.

import { toUtf8 } from "../text.js";
import { world } from "./world.js";

/**
 * @param {import("../http.d.ts").Sent} request
 * @returns {{ status: number, headers: [string, string][], body: Uint8Array }}
 */
export function send(request) {
  const { status = 200, headers = {}, body, json } = world("the network").http(request);
  const text = json === undefined ? (body ?? "") : JSON.stringify(json);
  return {
    status,
    headers: Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    body: typeof text === "string" ? toUtf8(text) : text,
  };
}
