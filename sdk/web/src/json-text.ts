/**
 * JSON as text. `JSON.parse` can change a value: 12345678901234567890 becomes another number, and the first of two members with
 * the same name is lost. People must approve exactly the value that runs, so it is shown and sent as it was written.
 */

/** JSON that is sent as it was written. The caller has checked the text. */
export class RawJson {
  /** Keeps a text that is JSON. */
  constructor(
    /** The text that is sent. */
    readonly text: string,
  ) {}
}

/** Whether a number keeps its value as a JavaScript number: 12345678901234567890 and 1e400 do not. */
export function isExact(text: string): boolean {
  const written = decimal(text);
  return written !== undefined && written === decimal(String(Number(text)));
}

/** A normal form of a number: its significant digits and the exponent. */
function decimal(text: string): string | undefined {
  const found = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text.trim());
  if (found === null) return undefined;
  const [, sign, whole = "", part = "", power = "0"] = found;
  const digits = (whole + part).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  const exponent = Number(power) - part.length + digits.length - significant.length;
  return `${sign === "-" ? "-" : ""}${significant}e${exponent}`;
}

/** Serialises a value that may contain `RawJson`. Undefined members are left out. */
export function serialize(body: unknown): string {
  if (body instanceof RawJson) return body.text;
  if (Array.isArray(body)) return `[${body.map(serialize).join(",")}]`;
  if (typeof body !== "object" || body === null) return JSON.stringify(body) ?? "null";
  // Only a method counts, as a `Date` has it: data can have a member of that name.
  if ("toJSON" in body && typeof body.toJSON === "function") return JSON.stringify(body) ?? "null";
  const members = Object.entries(body).filter(([, value]) => value !== undefined);
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${serialize(value)}`).join(",")}}`;
}

/** The tokens of a JSON text, exactly as they were written. */
function tokens(text: string): string[] {
  return text.match(/"(?:[^"\\]|\\[\s\S])*"?|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
}

/** Formats a JSON text with one member or element on each line. Tokens do not change, and neither does a text that is not JSON. */
export function pretty(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const written: string[] = [];
  let depth = 0;
  const all = tokens(text);
  const line = () => written.push("\n", "  ".repeat(depth));
  all.forEach((token, index) => {
    const opens = token === "{" || token === "[";
    if (opens) {
      written.push(token);
      const closesAtOnce = all[index + 1] === (token === "{" ? "}" : "]");
      if (!closesAtOnce) {
        depth += 1;
        line();
      }
    } else if (token === "}" || token === "]") {
      const opened = all[index - 1];
      if (opened !== "{" && opened !== "[") {
        depth -= 1;
        line();
      }
      written.push(token);
    } else if (token === ",") {
      written.push(token);
      line();
    } else {
      written.push(token === ":" ? ": " : token);
    }
  });
  return written.join("");
}

/** A member of an object: its name, and its value as it was written. */
export interface Member {
  name: string;
  text: string;
}

/** The members of a JSON object, or undefined for any other text. */
export function members(text: string): Member[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  } catch {
    return undefined;
  }
  const found: Member[] = [];
  let depth = 0;
  let name: string | undefined;
  let value: string[] = [];
  const finish = () => {
    if (name !== undefined) found.push({ name, text: value.join("") });
    name = undefined;
    value = [];
  };
  for (const token of tokens(text)) {
    const opens = token === "{" || token === "[";
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    const isOuter = (opens && depth === 0) || (closes && depth === 0 && name === undefined);
    if (closes && depth === 0) finish();
    else if (depth === 1 && token === ",") finish();
    else if (depth === 1 && name === undefined && token.startsWith('"')) name = JSON.parse(token) as string;
    else if (depth === 1 && token === ":" && value.length === 0) value = [];
    else if (!isOuter) value.push(token);
    if (opens) depth += 1;
  }
  return found;
}

/** The JSON text of an object with these members. */
export function object(parts: readonly Member[]): string {
  return `{${parts.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}
