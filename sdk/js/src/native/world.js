// What surrounds a call of a test: which of several that wait at the same time is found by Node.js itself.

import { AsyncLocalStorage } from "node:async_hooks";

/**
 * @typedef {object} World
 * @property {Map<string, Uint8Array>} keyvalue
 * @property {Readonly<Record<string, string>>} config
 * @property {(request: import("../http.d.ts").Sent) => import("../http.d.ts").Answer} http
 * @property {(level: import("../index.d.ts").Level, message: string) => void} log
 */

/** @type {AsyncLocalStorage<World>} */
export const worlds = new AsyncLocalStorage();

/** @param {string} what */
export function world(what) {
  const found = worlds.getStore();
  if (!found)
    throw new Error(`${what} is there within a call: natively, within run() of @toolgate/sdk/testing`);
  return found;
}
