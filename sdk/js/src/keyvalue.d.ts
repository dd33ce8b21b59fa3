import type { Failure, Json } from "./index.js";

/**
 * Why an operation of the store failed. Uncaught, it becomes `unavailable` if trying again may help, otherwise
 * `failed`.
 */
export class KeyValueError extends Failure {
  readonly tag: "failed" | "unavailable";
  readonly code: "no-such-store" | "access-denied" | "other" | "malformed";
}

/**
 * A bucket of values that outlive the call. Values are JSON. Calls run at the same time, and a host may be killed
 * between any two writes. Use `update` to change a value that other calls change too.
 */
export class Bucket {
  /** The value under a key, or `undefined`. */
  get<T = Json>(key: string): T | undefined;
  /** Stores a value under a key. */
  set(key: string, value: unknown): void;
  /** The bytes under a key, or `undefined`. */
  getBytes(key: string): Uint8Array | undefined;
  /** Stores bytes under a key. */
  setBytes(key: string, value: Uint8Array): void;
  /** Whether the key exists. */
  has(key: string): boolean;
  /** Removes a key, if it exists. */
  delete(key: string): void;
  /** All keys with this prefix, sorted. It reads every key of the bucket. */
  keys(prefix?: string): string[];
  /**
   * Adds an integer to the number under a key atomically, and returns the sum. A missing key counts as 0. A call that
   * is dispatched again adds again.
   */
  increment(key: string, by?: number): number;
  /**
   * Changes the value under a key by compare-and-swap. `step` gets the value (`undefined` if the key is missing) and
   * returns the new one. It is written only if no other call changed it meanwhile. Otherwise `step` runs again with the
   * new value, so it should have no other effect. An unchanged value and `undefined` are not written.
   * @returns The value after the update.
   */
  update<T = Json>(key: string, step: (value: T | undefined) => T | undefined): T | undefined;
}

/** The plugin's bucket with this name. Each plugin has `default`. */
export function open(name?: string): Bucket;
