import { describe, expect, it } from "vitest";
import { diff } from "../src/diff.js";
import { isExact, members, object, pretty, RawJson, serialize } from "../src/json-text.js";
import { parts, pointer } from "../src/pointer.js";
import { json, line, lines, span, who } from "../src/text.js";

describe("JSON as text", () => {
  it.each([
    ["{}", "{}"],
    ['{"a":1}', '{\n  "a": 1\n}'],
    [
      '{"a":{"b":[1,2,{}]},"c":[]}',
      '{\n  "a": {\n    "b": [\n      1,\n      2,\n      {}\n    ]\n  },\n  "c": []\n}',
    ],
    ['"{,}"', '"{,}"'],
    ['{"q":"a\\"b:{"}', '{\n  "q": "a\\"b:{"\n}'],
    ["12345678901234567890", "12345678901234567890"],
    ['{"a":1,"a":1e0}', '{\n  "a": 1,\n  "a": 1e0\n}'],
    ["no json", "no json"],
  ])("%s is shown with every token as it is", (text, shown) => {
    expect(pretty(text)).toBe(shown);
  });

  it("reads members without reading their values", () => {
    const text = '{"a": {"b": [1, 2]}, "n": 12345678901234567890, "s": "x,}", "e": {}}';
    expect(members(text)).toEqual([
      { name: "a", text: '{"b":[1,2]}' },
      { name: "n", text: "12345678901234567890" },
      { name: "s", text: '"x,}"' },
      { name: "e", text: "{}" },
    ]);
    expect(members("[1]")).toBeUndefined();
    expect(object(members(text) ?? [])).toBe('{"a":{"b":[1,2]},"n":12345678901234567890,"s":"x,}","e":{}}');
  });

  it("sends raw JSON unchanged, and leaves out undefined members", () => {
    const body = {
      decision: "approve",
      arguments: new RawJson('{"n":12345678901234567890}'),
      comment: undefined,
    };
    expect(serialize(body)).toBe('{"decision":"approve","arguments":{"n":12345678901234567890}}');
    expect(serialize({ answers: [body] })).toContain('[{"decision"');
    expect(serialize({ toJSON: true, n: new RawJson("1.10") })).toBe('{"toJSON":true,"n":1.10}');
    expect(serialize({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
  });
});

describe("diff", () => {
  it("finds removed, added and unchanged lines", () => {
    const kinds = diff("a\nb\nc\nd", "a\nx\nc\nd").map(({ kind, text }) => `${kind[0]}${text}`);
    expect(kinds).toEqual(["sa", "rb", "ax", "sc", "sd"]);
  });
  it("returns one block if the comparison is too large", () => {
    const [a, b] = [0, 1].map((n) => Array.from({ length: 1100 }, (_, i) => `${n}-${i}`).join("\n")) as [
      string,
      string,
    ];
    expect(diff(a, b)).toHaveLength(2200);
  });
});

describe("pointers", () => {
  it.each([
    ["/a~1b/0", ["a/b", "0"]],
    ["", []],
    ["/m~0n", ["m~n"]],
  ])("%s", (text, path) => {
    expect(parts(text)).toEqual(path);
    expect(pointer(path)).toBe(text);
  });
});

describe("untrusted text", () => {
  it.each([
    ["honest ünïcödé 漢字", "honest ünïcödé 漢字"],
    ["evil\u202egnp", "evil\\u{202e}gnp"],
    ["a\u200bb", "a\\u{200b}b"],
    ["\u001b[31m", "\\u{1b}[31m"],
    ["tag\u{e0041}", "tag\\u{e0041}"],
    ["wide\u3000space", "wide\\u{3000}space"],
    ["filler\u3164", "filler\\u{3164}"],
  ])("%j", (text, shown) => {
    expect(line(text)).toBe(shown);
  });
  it("keeps line breaks only in multi-line text", () => {
    expect([line("a\nb"), lines("a\r\nb")]).toEqual(["a\\nb", "a\nb"]);
  });
  it("stays JSON", () => {
    const text = json({ a: "\u202e\u{e0041}" });
    expect(text).toBe('{"a":"\\u202e\\udb40\\udc41"}');
    expect(JSON.parse(text)).toEqual({ a: "\u202e\u{e0041}" });
  });
  it("names people and spans", () => {
    expect([who("principal:alice"), who("group:finance"), span(65_000), span(3_700_000), span(-1)]).toEqual([
      "alice",
      "group finance",
      "1 min 05 s",
      "1 h 1 min",
      "0 s",
    ]);
  });
});

describe("a written number", () => {
  it.each([
    "0",
    "-0",
    "1",
    "-17",
    "1.50",
    "100",
    "1e3",
    "1E+21",
    "0.1",
    ".5",
    "3.",
    "9007199254740992",
    "1.7976931348623157e308",
  ])("is exact: %s", (text) => expect(isExact(text)).toBe(true));
  it.each([
    "12345678901234567890",
    "9007199254740993",
    "0.12345678901234567890",
    "1e400",
    "5e-400",
    "abc",
    "1,5",
    "0x10",
  ])("is not exact, or no number: %s", (text) => expect(isExact(text)).toBe(false));
});
