// JSON as it was written. JavaScript's numbers cannot hold every number of JSON; those that would change keep their text.

/** A number whose value does not fit into a JavaScript number without a change. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }

  toJSON(): unknown {
    // Browsers that tell a number's text can also write it.
    const { rawJSON } = JSON as unknown as { rawJSON?: (text: string) => unknown };
    return rawJSON ? rawJSON(this.text) : Number(this.text);
  }
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

/** Reads JSON; numbers that JavaScript would change become `ExactNumber`. Throws `SyntaxError`. */
export function parseExact(text: string): unknown {
  const exact: Reviver = (_, value, context) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || same(value, source)) return value;
    return new ExactNumber(source);
  };
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}

/** Whether a number reads as it was written. `1.0`, `1e3` and `-0` do not, and what was approved is shown as written. */
function same(value: number, source: string): boolean {
  return String(value) === source;
}
