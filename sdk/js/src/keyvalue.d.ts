// A key-value store whose data outlives the call. The plugin requests it with `[wants.keyvalue]`. Calls run at the same time
// in separate instances, and a host may be killed between any two writes. A tool that needs several writes must find out from
// the stored data how far an earlier attempt came.

import type { Failure, Json } from "./index.js";

/**
 * Why an operation of the store failed. Uncaught, it becomes `unavailable` if trying again may help, otherwise
 * `failed`.
 */
export class KeyValueError extends Failure {
  /** `unavailable` for `other`, otherwise `failed`. */
  readonly tag: "failed" | "unavailable";
  /**
   * The host has no bucket of this name, the plugin may not use it, the store is not available now, or a value has no form in
   * JSON.
   */
  readonly code: "no-such-store" | "access-denied" | "other" | "malformed";
}

/**
 * A bucket of values that outlive the call. Values are JSON. Calls run at the same time, and a host may be killed
 * between any two writes. Use `update` to change a value that other calls change too.
 */
export class Bucket {
  /**
   * The value under a key, or `undefined`.
   * @throws `KeyValueError`: `malformed` if the value is not JSON, `other` if the store is not available now.
   */
  get<T = Json>(key: string): T | undefined;
  /**
   * Stores a value under a key.
   * @throws `KeyValueError`: `malformed` if the value has no form in JSON, `other` if the store is not available now.
   */
  set(key: string, value: unknown): void;
  /**
   * The bytes under a key, or `undefined`.
   * @throws `KeyValueError`: `other` if the store is not available now.
   */
  getBytes(key: string): Uint8Array | undefined;
  /**
   * Stores bytes under a key.
   * @throws `KeyValueError`: `other` if the store is not available now.
   */
  setBytes(key: string, value: Uint8Array): void;
  /**
   * Whether the key exists.
   * @throws `KeyValueError`: `other` if the store is not available now.
   */
  has(key: string): boolean;
  /**
   * Removes a key, if it exists.
   * @throws `KeyValueError`: `other` if the store is not available now.
   */
  delete(key: string): void;
  /**
   * All keys with this prefix, sorted. It reads every key of the bucket.
   * @throws `KeyValueError`: `other` if the store is not available now.
   */
  keys(prefix?: string): string[];
  /**
   * Adds an integer to the number under a key atomically, and returns the sum. A missing key counts as 0. A call that
   * is dispatched again adds again.
   * @throws `RangeError` if `by` is not a safe integer. `KeyValueError`: `other` if the value is not a number, or the store is
   * not available now.
   */
  increment(key: string, by?: number): number;
  /**
   * Changes the value under a key by compare-and-swap. `step` gets the value (`undefined` if the key is missing) and
   * returns the new one. It is written only if no other call changed it meanwhile. Otherwise `step` runs again with the
   * new value, so it should have no other effect. An unchanged value and `undefined` are not written.
   * @returns The value after the update.
   * @throws The error of `step`, with nothing written. `KeyValueError`: `malformed` if a value is not JSON, `other` if the
   * store is not available now or other calls change the key too often.
   */
  update<T = Json>(key: string, step: (value: T | undefined) => T | undefined): T | undefined;
}

/**
 * The plugin's bucket with this name. Each plugin has `default`.
 * @throws `KeyValueError`: `no-such-store`, `access-denied`, or `other` if the store is not available now.
 */
export function open(name?: string): Bucket;
