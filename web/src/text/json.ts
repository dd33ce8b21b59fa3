// JSON as it was written. JavaScript's numbers cannot hold every number of JSON; those that would change keep their text.

import { RawJson } from "@toolgate/web";

/** A number that JavaScript would write differently: `12345678901234567890`, `1.10`. */
export class ExactNumber extends RawJson {
  override toString(): string {
    return this.text;
  }
}

/** Matches strings, so that digits in them are left alone, and numbers. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** The member that represents an exact number during parsing. It is random, so that no input can contain it. */
const MARK = crypto.randomUUID();

/** Reads JSON; numbers that JavaScript would change become `ExactNumber`. Throws `SyntaxError`. */
export function parseExact(text: string): unknown {
  const value: unknown = JSON.parse(text);
  let changes = false;
  const marked = text.replace(TOKENS, (token) => {
    if (token.startsWith('"') || String(Number(token)) === token) return token;
    changes = true;
    return `{"${MARK}":"${token}"}`;
  });
  return changes ? JSON.parse(marked, exact) : value;
}

function exact(_: string, value: unknown): unknown {
  const isMarked = typeof value === "object" && value !== null && MARK in value;
  return isMarked ? new ExactNumber(String((value as Record<string, unknown>)[MARK])) : value;
}
