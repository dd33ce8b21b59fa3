// The JSON text of results, progress and questions.

import { Failed } from "./failure.js";
import { isWellFormed, wellFormed } from "./text.js";

/**
 * The JSON text of a value, or `undefined` for a function and other values without a form in JSON.
 * @param {unknown} value
 * @throws With the position of a value that JSON.stringify would silently change: NaN, or a lone surrogate.
 */
export function json(value) {
  /** @type {Map<unknown, [unknown, string]>} */
  const outer = new Map();
  return JSON.stringify(value, function (key, part) {
    const wrong = misfit(key, part);
    if (wrong) throw new Failed(`${place(outer, this, key)}: ${wrong}`);
    if (typeof part === "object" && part !== null) outer.set(part, [this, key]);
    return part;
  });
}

/**
 * @param {string} key
 * @param {unknown} part
 */
function misfit(key, part) {
  if (typeof part === "number" && !Number.isFinite(part))
    return `${part} has no form in JSON; give null where there is no number`;
  if (!isWellFormed(key) || (typeof part === "string" && !isWellFormed(part)))
    return "a text has a lone surrogate, which is not Unicode";
  return undefined;
}

/**
 * The position of a member, as a JSON Pointer.
 * @param {Map<unknown, [unknown, string]>} outer The holder and the name of each object. The root has no entry.
 * @param {unknown} holder
 * @param {string} key
 */
function place(outer, holder, key) {
  const steps = [];
  for (let at = outer.get(holder); at; at = outer.get(holder)) {
    steps.unshift(wellFormed(key).replaceAll("~", "~0").replaceAll("/", "~1"));
    [holder, key] = at;
  }
  return `/${steps.join("/")}`;
}
