// The store of a test: a map that the test can supply and inspect.

import { fromUtf8, toUtf8 } from "../text.js";
import { world } from "./world.js";

export class RawBucket {
  #values;

  /** @param {Map<string, Uint8Array>} values */
  constructor(values) {
    this.#values = values;
  }

  /** @param {string} key */
  get(key) {
    return this.#values.get(key);
  }

  /**
   * @param {string} key
   * @param {Uint8Array} value
   */
  set(key, value) {
    this.#values.set(key, value.slice());
  }

  /** @param {string} key */
  exists(key) {
    return this.#values.has(key);
  }

  /** @param {string} key */
  delete(key) {
    this.#values.delete(key);
  }

  /** @param {string | undefined} _cursor */
  listKeys(_cursor) {
    return { keys: [...this.#values.keys()], cursor: undefined };
  }

  get takesNegative() {
    return true;
  }

  /**
   * @param {string} key
   * @param {number} by
   */
  increment(key, by) {
    const stored = this.#values.get(key);
    const sum = Number(stored ? fromUtf8(stored) : 0) + by;
    if (!Number.isSafeInteger(sum)) throw { tag: "other", val: `what is under "${key}" is not a number` };
    this.#values.set(key, toUtf8(String(sum)));
    return sum;
  }

  /** @param {string} key */
  cas(key) {
    return new Cas(this.#values, key);
  }
}

class Cas {
  #values;
  #key;
  /** @type {Uint8Array | undefined} */
  #seen;

  /**
   * @param {Map<string, Uint8Array>} values
   * @param {string} key
   */
  constructor(values, key) {
    this.#values = values;
    this.#key = key;
    this.#seen = values.get(key);
  }

  current() {
    return this.#seen;
  }

  /**
   * @param {Uint8Array} value
   * @returns {Cas | undefined}
   */
  swap(value) {
    if (this.#values.get(this.#key) !== this.#seen) return new Cas(this.#values, this.#key);
    this.#values.set(this.#key, value.slice());
    return undefined;
  }
}

/** @param {string} name */
export function openBucket(name) {
  const { keyvalue } = world("the key-value store");
  if (name !== "default") throw { tag: "no-such-store" };
  return new RawBucket(keyvalue);
}
