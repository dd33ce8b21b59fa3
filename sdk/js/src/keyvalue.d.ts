import type { Failure, Json } from "./index.js";

/** Why the store did not do what it was asked. Uncaught, it is `unavailable` where trying again may help, else `failed`. */
export class KeyValueError extends Failure {
  readonly tag: "failed" | "unavailable";
  readonly code: "no-such-store" | "access-denied" | "other" | "malformed";
}

/**
 * A bucket of values that outlast the call. Values are JSON. Calls run at the same time, and a host may be killed between any two
 * writes: `update` is the one way to change a value that others change too.
 */
export class Bucket {
  /** The value under a key, or `undefined`. */
  get<T = Json>(key: string): T | undefined;
  /** Puts a value under a key. */
  set(key: string, value: unknown): void;
  /** The bytes under a key, or `undefined`. */
  getBytes(key: string): Uint8Array | undefined;
  /** Puts bytes under a key. */
  setBytes(key: string, value: Uint8Array): void;
  /** Whether there is a value under a key. */
  has(key: string): boolean;
  /** Removes a key; one that is not there is fine. */
  delete(key: string): void;
  /** All keys that begin with a prefix, in order. Reads every key of the bucket. */
  keys(prefix?: string): string[];
  /**
   * Adds an integer to the number under a key, 0 if there is none, and gives the sum. One step; but a call that is dispatched again
   * adds again.
   */
  increment(key: string, by?: number): number;
  /**
   * Changes the value under a key by compare-and-swap: `step` gets the value (`undefined` if there is none) and returns the new one,
   * which is written only if nobody else wrote meanwhile; otherwise it starts again with what they wrote. `step` may therefore run
   * several times and should do nothing else. What it leaves unchanged, and `undefined`, is not written.
   * @returns What is there afterwards.
   */
  update<T = Json>(key: string, step: (value: T | undefined) => T | undefined): T | undefined;
}

/** The plugin's bucket of this name. Each plugin has `default`. */
export function open(name?: string): Bucket;
