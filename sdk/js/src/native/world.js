// The environment of a test's call. Node.js itself finds the right one among several that wait at the same time.

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
    throw new Error(`${what} exists only within a call: natively, within run() of @toolgate/sdk/testing`);
  return found;
}
