import { describe, expect, it } from "vitest";
import { match, navigate, ownPath } from "../src/router";

describe("match", () => {
  it.each([
    ["/", "/", {}],
    ["/audit", "/audit", {}],
    ["/audit", "/audit/", undefined],
    ["/audit", "/audits", undefined],
    ["/conversations/:c", "/conversations/demo", { c: "demo" }],
    ["/conversations/:c", "/conversations/a%2Fb%20c", { c: "a/b c" }],
    ["/conversations/:c", "/conversations/", undefined],
    ["/conversations/:c", "/conversations/a/b", undefined],
    ["/conversations/:c", "/conversations/%E0%A4%A", undefined],
  ])("%s and %s", (pattern, path, parts) => {
    expect(match(pattern, path)).toEqual(parts);
  });
});

describe("ownPath", () => {
  it.each([
    [null, "/"],
    ["/audit?by=bob", "/audit?by=bob"],
    ["https://elsewhere.example/audit", "/"],
    ["//elsewhere.example/audit", "/"],
    ["/\\elsewhere.example/audit", "/"],
    ["javascript:alert(1)", "/"],
    ["audit", "/"],
  ])("%s leads to %s", (to, place) => {
    expect(ownPath(to)).toBe(place);
  });
});

describe("navigate", () => {
  it("adds one history entry for repeated choices", () => {
    const before = history.length;
    navigate("/audit");
    navigate("/audit");
    expect(location.pathname).toBe("/audit");
    expect(history.length).toBe(before + 1);
  });
});
