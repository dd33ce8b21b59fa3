import { describe, expect, it } from "vitest";
import { shownChanges } from "../src/diff.js";
import { RawJson } from "../src/json-text.js";
import { json, line, lines } from "../src/text.js";

describe("what deceives is written out", () => {
  it.each([
    // Hidden, turned around, forged.
    ["pay\u202Eecila", "pay\\u{202e}ecila"],
    ["zero\u200Bwidth", "zero\\u{200b}width"],
    ["two\nlines", "two\\nlines"],
    // A word that mixes scripts: its foreign letters.
    ["pаypal.com", "p\\u{430}ypal.com"],
    ["pay.раypal", "pay.\\u{440}\\u{430}ypal"],
    ["αlpha", "\\u{3b1}lpha"],
    ["v٣", "v\\u{663}"],
    // A word of another script that looks like ASCII altogether, and nothing around that is of that script.
    ["send it to сосо", "send it to \\u{441}\\u{43e}\\u{441}\\u{43e}"],
    ["pаypal.com has сосо", "p\\u{430}ypal.com has \\u{441}\\u{43e}\\u{441}\\u{43e}"],
    ["as мир says to сосо", "as мир says to \\u{441}\\u{43e}\\u{441}\\u{43e}"],
    ["ΑΒΕ", "\\u{391}\\u{392}\\u{395}"],
    // Styled letters, odd ones, and signs of addresses.
    ["ｐay", "\\u{ff50}ay"],
    ["𝐩ay 𝟏0", "\\u{1d429}ay \\u{1d7cf}0"],
    ["ɡoogle Ⅿ", "\\u{261}oogle \\u{216f}"],
    ["example.com∕login", "example.com\\u{2215}login"],
  ])("%j", (text, expected) => {
    expect(line(text)).toBe(expected);
  });

  it("keeps lines where there may be several", () => {
    expect(lines("one\r\ntwо\rthree")).toBe("one\ntw\\u{43e}\\u{d}three");
  });

  it("stays the same value in JSON", () => {
    const value = { "pаy\u202e": ["𝐩\u{e0041}", "Привет\nмир", "\u2028"] };
    expect(JSON.parse(json(value))).toEqual(value);
    expect(json(value)).toBe(
      '{"p\\u0430y\\u202e":["\\ud835\\udc29\\udb40\\udc41","Привет\\nмир","\\u2028"]}',
    );
  });
});

it("says what changed between two values, with numbers as they are written", () => {
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

describe("honest text stays as it is", () => {
  it.each([
    "plain words, äöü, 漢字, 🙂",
    "Grüße aus Łódź, İzmir und Malmö",
    "Привет, мир! Это хорошо: оса и рост.",
    "Καλημέρα κόσμε, και νερό",
    "日本語のABCテスト、ＡＢＣも",
    "한국어 text와 함께",
    "שלום עולם, مرحبا بالعالم",
    "नमस्ते दुनिया",
    "e\u0301 und 1/2, m², 5 µm",
    "a@b.example/c:d_e-f+g~h",
  ])("%j", (text) => {
    expect(line(text)).toBe(text);
  });
});
