// The operator's configuration for the plugin: wasi:config of the host, or the values of a test.
//
// The value of a secret is a placeholder. The host replaces it in a request over `http` if the operator granted that.
// It has no other use.

import { readAll, readOne } from "#config";
import { Failed, Unavailable } from "./failure.js";

/**
 * @template T
 * @param {() => T} step
 */
function translated(step) {
  try {
    return step();
  } catch (error) {
    const { tag, val } = /** @type {{ tag?: string, val?: unknown }} */ (error ?? {});
    if (tag === undefined) throw error;
    throw new Unavailable(`the configuration cannot be read now: ${val}`);
  }
}

/** @type {typeof import("./config.d.ts").get} */
export const get = (name) => translated(() => readOne(name));

/** @type {typeof import("./config.d.ts").required} */
export function required(name) {
  const value = get(name);
  if (value === undefined) throw new Failed(`the operator has not configured "${name}" for this plugin`);
  return value;
}

/** @type {typeof import("./config.d.ts").all} */
export const all = () => Object.fromEntries(translated(() => readAll()));
