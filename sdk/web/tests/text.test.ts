import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { shownChanges } from "../src/diff.js";
import { RawJson } from "../src/json-text.js";
import { json, line, lines } from "../src/text.js";

/** The expected texts of the host's own tests. */
interface Rows {
  hostile: Record<string, [string, string][]>;
  honest: Record<string, string[]>;
  meant_well: [string, string][];
}
const rows = JSON.parse(
  readFileSync(new URL("../../../host/escape/tests/shown/rows.json", import.meta.url), "utf8"),
) as Rows;

describe("a page shows a text as the host does", () => {
  it.each([...Object.values(rows.hostile).flat(), ...rows.meant_well])("%j", (text, expected) => {
    expect(line(text)).toBe(expected);
    expect(JSON.parse(json([text]))).toEqual([text]);
  });

  it.each(Object.values(rows.honest).flat())("%j", (text) => {
    expect(line(text)).toBe(text);
    expect(json([text])).toBe(JSON.stringify([text]));
  });
});

describe("deceptive characters are escaped", () => {
  it("keeps line breaks in multi-line text", () => {
    expect(lines("one\r\ntwо\rthree")).toBe("one\ntw\\u{43e}\\rthree");
  });

  // The largest size of arguments. A quadratic algorithm would be very slow.
  it.each([
    ["а.", "\\u{430}."],
    ["\u20e3", "\\u{20e3}"],
    ["1\ufe0f\u20e3", "1\ufe0f\u20e3"],
    ["ａ", "\\u{ff41}"],
  ])("in a long text as in a short one: %j", { timeout: 60_000 }, (text, shown) => {
    const times = 2 ** 20 / 3;
    expect(line(text.repeat(times)) === shown.repeat(times)).toBe(true);
  });

  it("stays the same value in JSON", () => {
    const value = { "pаy\u202e": ["𝐩a\u{e0041}", "Привет\nмир", "\u2028"] };
    expect(JSON.parse(json(value))).toEqual(value);
    expect(json(value)).toBe(
      '{"p\\u0430y\\u202e":["\\ud835\\udc29a\\udb40\\udc41","Привет\\nмир","\\u2028"]}',
    );
  });
});

it("compares two values, with numbers as they were written", () => {
  const changes = shownChanges({ to: "bob", n: new RawJson("1.0") }, { to: "bоb", n: new RawJson("1.00") });
  expect(changes.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    "same {",
    'removed   "to": "bob",',
    'removed   "n": 1.0',
    'added   "to": "b\\u043eb",',
    'added   "n": 1.00',
    "same }",
  ]);
});
