// The differences between the two engines. The build sets the engine.

/** @type {"quickjs" | "starlingmonkey"} */
export const ENGINE = TOOLGATE_ENGINE;

/**
 * A missing value of an option: `null` for QuickJS, `undefined` for StarlingMonkey.
 * @template T
 * @param {T | undefined} value
 */
export function none(value) {
  return value ?? (ENGINE === "quickjs" ? null : undefined);
}

/** Whether a negative 64-bit integer can be passed to the host. StarlingMonkey aborts on one. */
export const NEGATIVE = ENGINE === "quickjs";

/**
 * A 64-bit integer for the host: a number for QuickJS, a BigInt for StarlingMonkey.
 * @param {number} value
 */
export function int64(value) {
  return ENGINE === "quickjs" ? value : BigInt(value);
}

/**
 * A signed 64-bit integer from the host, as a number.
 * @param {number | bigint} value
 */
export function fromInt64(value) {
  return typeof value === "bigint" ? Number(BigInt.asIntN(64, value)) : value;
}

/**
 * The error of a `result`, in whichever form the engine throws it.
 * @param {any} thrown
 * @returns {{ tag: string, val?: any }}
 */
export function payload(thrown) {
  const error = thrown?.payload ?? thrown;
  return typeof error === "string" ? { tag: error } : error?.tag ? error : { tag: "", val: String(thrown) };
}
