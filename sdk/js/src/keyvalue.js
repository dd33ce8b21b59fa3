// A key-value store whose data outlives the call: wasi:keyvalue of the host, or the memory of a test.

import { openBucket } from "#keyvalue";
import { Failure } from "./failure.js";
import { fromUtf8, toUtf8 } from "./text.js";

/**
 * More lost swaps than this in a row mean that something is wrong. A busy key alone does not cause them.
 */
const MAX_SWAPS = 1000;

export class KeyValueError extends Failure {
  /**
   * @param {"no-such-store" | "access-denied" | "other" | "malformed"} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
    /** @type {"failed" | "unavailable"} */
    this.tag = code === "other" ? "unavailable" : "failed";
  }
}

const SENTENCES = {
  "no-such-store": "the host has no such key-value bucket",
  "access-denied": "the key-value bucket may not be used by this plugin",
};

/**
 * @template T
 * @param {() => T} step
 * @returns {T}
 */
function translated(step) {
  try {
    return step();
  } catch (error) {
    const { tag, val } = /** @type {{ tag?: string, val?: unknown }} */ (error ?? {});
    if (tag === "no-such-store" || tag === "access-denied") throw new KeyValueError(tag, SENTENCES[tag]);
    if (tag === undefined) throw error;
    throw new KeyValueError("other", `the key-value store cannot be used now: ${val}`);
  }
}

export class Bucket {
  #bucket;

  /** @param {import("#keyvalue").RawBucket} bucket */
  constructor(bucket) {
    this.#bucket = bucket;
  }

  /** @param {string} key */
  get(key) {
    return decode(key, this.getBytes(key));
  }

  /**
   * @param {string} key
   * @param {unknown} value
   */
  set(key, value) {
    this.setBytes(key, toUtf8(encode(key, value)));
  }

  /** @param {string} key */
  getBytes(key) {
    return translated(() => this.#bucket.get(key));
  }

  /**
   * @param {string} key
   * @param {Uint8Array} value
   */
  setBytes(key, value) {
    translated(() => this.#bucket.set(key, value));
  }

  /** @param {string} key */
  has(key) {
    return translated(() => this.#bucket.exists(key));
  }

  /** @param {string} key */
  delete(key) {
    translated(() => this.#bucket.delete(key));
  }

  keys(prefix = "") {
    const keys = new Set();
    /** @type {string | undefined} */
    let cursor;
    do {
      const page = translated(() => this.#bucket.listKeys(cursor));
      for (const key of page.keys) if (key.startsWith(prefix)) keys.add(key);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return [...keys].sort();
  }

  /** @param {string} key */
  increment(key, by = 1) {
    if (!Number.isSafeInteger(by)) throw new RangeError(`${by} is not an integer that can be added`);
    if (by >= 0 || this.#bucket.takesNegative) return translated(() => this.#bucket.increment(key, by));
    return this.update(key, (number = 0) => added(key, number, by));
  }

  /**
   * @param {string} key
   * @param {(value: any) => any} step
   */
  update(key, step) {
    let cas = translated(() => this.#bucket.cas(key));
    for (let swaps = 0; swaps < MAX_SWAPS; swaps += 1) {
      const before = translated(() => cas.current());
      const value = decode(key, before);
      const was = before && encode(key, value);
      const next = step(value);
      if (next === undefined || encode(key, next) === was) return next ?? decode(key, before);
      const again = translated(() => cas.swap(toUtf8(encode(key, next))));
      if (!again) return next;
      cas = again;
    }
    throw new KeyValueError("other", `"${key}" is being changed by too many calls at once`);
  }
}

/** @type {typeof import("./keyvalue.d.ts").open} */
export const open = (name = "default") => /** @type {any} */ (new Bucket(translated(() => openBucket(name))));

/**
 * @param {string} key
 * @param {unknown} number
 * @param {number} by
 */
function added(key, number, by) {
  if (Number.isSafeInteger(number)) return Number(number) + by;
  throw new KeyValueError(
    "other",
    `the key-value store cannot be used now: what is under "${key}" is not a number`,
  );
}

/**
 * @param {string} key
 * @param {Uint8Array | undefined} bytes
 */
function decode(key, bytes) {
  if (bytes === undefined) return undefined;
  try {
    return JSON.parse(fromUtf8(bytes));
  } catch {
    throw new KeyValueError("malformed", `the value of "${key}" is not JSON`);
  }
}

/**
 * @param {string} key
 * @param {unknown} value
 */
function encode(key, value) {
  const text = JSON.stringify(value);
  if (text === undefined)
    throw new KeyValueError("malformed", `a ${typeof value} for "${key}" has no JSON form`);
  return text;
}
