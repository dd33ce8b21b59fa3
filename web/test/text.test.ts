import { describe, expect, it } from "vitest";
import { ExactNumber, parseExact } from "../src/text/json";
import { shown, shownLines } from "../src/text/shown";
import { bytes, counted, shortMoment, span, through } from "../src/text/words";

describe("shown", () => {
  it.each([
    ["plain words, äöü, 漢字, 🙂", "plain words, äöü, 漢字, 🙂"],
    ["pay\u202Eecila", "pay\\u{202e}ecila"],
    ["zero\u200Bwidth", "zero\\u{200b}width"],
    ["bell\u0007 escape\u001B[31m", "bell\\u{7} escape\\u{1b}[31m"],
    ["tag\u{E0041}", "tag\\u{e0041}"],
    ["no\u00A0break", "no\\u{a0}break"],
    ["filler\u3164", "filler\\u{3164}"],
    ["line\u2028break", "line\\u{2028}break"],
    ["two\nlines", "two\\nlines"],
    ["e\u0301", "e\u0301"],
    ["z\u0301\u0302\u0303\u0304\u0305", "z\u0301\u0302\u0303\u0304\\u{305}"],
    [" \u0301alone", " \\u{301}alone"],
  ])("%j", (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  it("keeps line breaks in multi-line text", () => {
    expect(shownLines("one\r\ntwo\rthree")).toBe("one\ntwo\\rthree");
  });
});

describe("parseExact", () => {
  it("reads JSON", () => {
    expect(parseExact('{"a":[1,"2",null,true,-0.5]}')).toEqual({ a: [1, "2", null, true, -0.5] });
  });

  it.each(["12345678901234567890", "1.10", "1e400", "-0"])("keeps %s as it was written", (text) => {
    const number = parseExact(text);
    expect(number).toBeInstanceOf(ExactNumber);
    expect(String(number)).toBe(text);
  });

  it("does not change strings", () => {
    const text = '{"1.10":"1.10","a":"\\"1.10","b":["x\\\\",1.10]}';
    const { b, ...rest } = parseExact(text) as Record<string, unknown>;
    expect(rest).toEqual({ "1.10": "1.10", a: '"1.10' });
    expect(String(b)).toBe("x\\,1.10");
  });

  it.each(["{a:1}", "01", "1.", "[1.10,]", "1.10 2"])("refuses %s", (text) => {
    expect(() => parseExact(text)).toThrow(SyntaxError);
  });
});

describe("words", () => {
  it.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [1000, "1 s"],
    [3_661_000, "1 h 1 min"],
    [3_600_000, "1 h"],
    [90_061_000, "1 d 1 h"],
  ])("%i ms is %s", (ms, words) => {
    expect(span(ms)).toBe(words);
  });

  it("counts and sizes", () => {
    expect([counted(1, "call"), counted(0, "call")]).toEqual(["1 call", "0 calls"]);
    expect([bytes(1023), bytes(1536), bytes(5 * 1024 ** 3)]).toEqual(["1023 B", "1.5 KiB", "5.0 GiB"]);
  });

  it.each([
    [undefined, ""],
    ["console", " (in the console)"],
    ["api", " (through the API)"],
    ["link", " (by a link)"],
    ["mcp-form", " (in a form of an MCP client)"],
    ["new\u202E", " (by a new\\u{202e})"],
  ])("the channel %j is %j", (via, words) => {
    expect(through(via)).toBe(words);
  });

  it("keeps an invalid time as it is", () => {
    expect(shortMoment("soon")).toBe("soon");
  });
});
