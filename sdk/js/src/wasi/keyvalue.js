// The store of a real call: wasi:keyvalue, interfaces `store` and `atomics`.

import * as atomics from "wasi:keyvalue/atomics";
import * as store from "wasi:keyvalue/store";
import { fromInt64, int64, NEGATIVE, none, payload } from "./engine.js";

/**
 * @template T
 * @param {() => T} step
 * @returns {T}
 */
function translated(step) {
  try {
    return step();
  } catch (thrown) {
    throw payload(thrown);
  }
}

export class RawBucket {
  #bucket;

  /** @param {string} name */
  constructor(name) {
    this.#bucket = translated(() => store.open(name));
  }

  /**
   * @param {string} key
   * @returns {Uint8Array | undefined}
   */
  get(key) {
    return bytes(translated(() => this.#bucket.get(key)));
  }

  /**
   * @param {string} key
   * @param {Uint8Array} value
   */
  set(key, value) {
    translated(() => this.#bucket.set(key, value));
  }

  /**
   * @param {string} key
   * @returns {boolean}
   */
  exists(key) {
    return translated(() => this.#bucket.exists(key));
  }

  /** @param {string} key */
  delete(key) {
    translated(() => this.#bucket.delete(key));
  }

  /**
   * @param {string | undefined} cursor
   * @returns {{ keys: string[], cursor: string | undefined }}
   */
  listKeys(cursor) {
    const page = translated(() => this.#bucket.listKeys(none(cursor)));
    return { keys: page.keys, cursor: page.cursor ?? undefined };
  }

  /** Whether `increment` accepts negative numbers. */
  get takesNegative() {
    return NEGATIVE;
  }

  /**
   * @param {string} key
   * @param {number} by
   */
  increment(key, by) {
    return fromInt64(translated(() => atomics.increment(this.#bucket, key, int64(by))));
  }

  /** @param {string} key */
  cas(key) {
    return new Cas(translated(() => atomics.Cas.new(this.#bucket, key)));
  }
}

class Cas {
  #cas;

  /** @param {any} cas */
  constructor(cas) {
    this.#cas = cas;
  }

  /** @returns {Uint8Array | undefined} */
  current() {
    return bytes(translated(() => this.#cas.current()));
  }

  /**
   * @param {Uint8Array} value
   * @returns {Cas | undefined} The next attempt, if another call changed the value first.
   */
  swap(value) {
    try {
      atomics.swap(this.#cas, value);
      return undefined;
    } catch (thrown) {
      const { tag, val } = payload(thrown);
      if (tag === "cas-failed") return new Cas(val);
      throw tag === "store-error" ? payload(val) : payload(thrown);
    }
  }
}

/** @param {string} name */
export const openBucket = (name) => new RawBucket(name);

/** @param {any} value */
function bytes(value) {
  return value === null || value === undefined ? undefined : Uint8Array.from(value);
}
