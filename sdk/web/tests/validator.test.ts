import type { RJSFSchema } from "@rjsf/utils";
import { describe, expect, it } from "vitest";
import { forPeople, isStrange, type Schema } from "../src/form/schema.js";
import { errorSchema, findings, fits, validator } from "../src/form/validator.js";

/** The errors as `path: message`. */
const messages = (schema: unknown, value: unknown) =>
  findings(schema, value).map(({ path, message }) => `${path.join("/")}: ${message}`);

const PERSON = {
  type: "object",
  required: ["name", "home"],
  properties: { name: { type: "string", minLength: 1 }, home: { $ref: "#/$defs/home" } },
  $defs: {
    home: {
      type: "object",
      required: ["city"],
      properties: {
        city: { type: "string" },
        floors: { type: "array", items: { type: "integer", minimum: 0 } },
      },
    },
  },
};

const SHAPE = {
  oneOf: [
    { type: "object", required: ["r"], properties: { kind: { const: "circle" }, r: { type: "number" } } },
    { type: "object", required: ["a"], properties: { kind: { const: "square" }, a: { type: "number" } } },
  ],
};

describe("the validator", () => {
  it.each<[string, unknown, unknown, string[]]>([
    ["a value that fits", PERSON, { name: "x", home: { city: "y", floors: [0, 1] } }, []],
    [
      "what is missing, at its own place",
      PERSON,
      { home: {} },
      ["home/city: This is required.", "name: This is required."],
    ],
    [
      "nothing, as a form without entries",
      PERSON,
      undefined,
      ["home: This is required.", "name: This is required."],
    ],
    [
      "nested items behind a reference",
      PERSON,
      { name: "x", home: { city: "y", floors: [1, -1] } },
      ["home/floors/1: -1 is less than 0."],
    ],
    ["a type", PERSON, { name: 1, home: { city: "y" } }, ["name: Expected: string."]],
    ["the nearest of alternatives", SHAPE, { kind: "square" }, ["a: This is required."]],
    ["no alternative at all", SHAPE, 7, [": This matches none of the choices, or more than one."]],
    [
      "a format",
      { properties: { at: { type: "string", format: "email" } } },
      { at: "x" },
      ["at: This is not in the format email."],
    ],
    [
      "a date",
      { properties: { on: { format: "date" } } },
      { on: "2026-02-30" },
      ["on: This is not in the format date."],
    ],
    [
      "what is not expected",
      { properties: {}, additionalProperties: false },
      { x: 1 },
      [': Property "x" is not expected here.'],
    ],
    [
      "dependent members",
      { dependentRequired: { a: ["b"] } },
      { a: 1 },
      [': This has "a" but does not have "b".'],
    ],
    [
      "tuples of 2020-12",
      { prefixItems: [{ type: "number" }], items: false },
      [1, 2],
      [": Items did not match schema."],
    ],
    [
      "tuples of draft-07",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        $id: "https://example.com/tool.json",
        items: [{ $ref: "#/definitions/n" }],
        additionalItems: false,
        definitions: { n: { type: "number" } },
      },
      [1, 2],
      [": Items did not match additional items schema."],
    ],
    [
      "conditions",
      JSON.parse('{"if":{"required":["a"]},"then":{"required":["b"]}}'),
      { a: 1 },
      ["b: This is required."],
    ],
    [
      "names with a slash",
      { properties: { "a/b": { type: "number" } } },
      { "a/b": "x" },
      ["a/b: Expected: number."],
    ],
  ])("reports %s", (_, schema, value, expected) => {
    expect(messages(schema, value).sort()).toEqual(expected);
  });

  it("follows references from a part into the whole", () => {
    const part = { $ref: "#/$defs/home" };
    expect(fits(part, { city: "x" }, PERSON)).toBe(true);
    expect(fits(part, {}, PERSON)).toBe(false);
    expect(validator.isValid(part, {}, PERSON as RJSFSchema)).toBe(false);
  });

  it("leaves a schema that it cannot evaluate to the host", () => {
    expect(messages({ $ref: "#/$defs/none" }, {})).toEqual([]);
    expect(messages({ $ref: "#" }, {})).toEqual([]);
  });

  it("does not modify its input", () => {
    const schema = structuredClone(PERSON);
    findings(schema, {});
    expect(Reflect.ownKeys(schema.$defs.home)).toEqual(Reflect.ownKeys(PERSON.$defs.home));
  });

  it("puts errors under the fields and nowhere else", () => {
    const found = errorSchema([
      { path: ["a", "0"], keyword: "x", message: "one" },
      { path: ["a", "0"], keyword: "x", message: "two" },
      { path: ["constructor"], keyword: "x", message: "three" },
      { path: ["__proto__", "polluted"], keyword: "x", message: "four" },
    ]);
    expect(found.a?.[0 as never]).toEqual({ __errors: ["one", "two"] });
    expect(Object.hasOwn(found, "constructor")).toBe(true);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe("a schema for a form", () => {
  const hostile = "^(a+)+$";

  it("has no patterns, and forbids nothing that only they allow", () => {
    const schema: Schema = {
      type: "object",
      patternProperties: { [hostile]: { type: "string" } },
      additionalProperties: false,
      properties: { pattern: { type: "string", pattern: hostile } },
      allOf: [{ properties: { x: { items: { pattern: hostile } } } }],
    };
    const made = forPeople(schema);
    expect(JSON.stringify(made)).not.toContain(hostile);
    expect(made).toMatchObject({ properties: { pattern: { type: "string" } } });
    expect(made).not.toHaveProperty("additionalProperties");
  });

  it("leaves values that look like keywords", () => {
    const schema: Schema = {
      default: { pattern: "x" },
      const: { title: "\u202e" },
      examples: [{ pattern: "y" }],
    };
    expect(forPeople(schema)).toEqual(schema);
  });

  it("escapes titles, descriptions, names and choices", () => {
    const made = forPeople({
      title: "a\u202eb",
      description: "c\u200bd",
      properties: { "e\u202ef": { type: "string" } },
      $defs: { g: { enum: ["yes", "n\u200bo"] } },
    });
    expect(made).toEqual({
      title: "a\\u{202e}b",
      description: "c\\u{200b}d",
      properties: { "e\u202ef": { type: "string", title: "e\\u{202e}f" } },
      $defs: {
        g: {
          oneOf: [
            { const: "yes", title: "yes" },
            { const: "n\u200bo", title: "n\\u{200b}o" },
          ],
        },
      },
    });
  });

  it("gives no form if a name has a meaning in JavaScript", () => {
    expect(isStrange(JSON.parse('{"properties":{"__proto__":{}}}'))).toBe(true);
    expect(isStrange({ properties: { prototypes: {} } })).toBe(false);
    expect(isStrange({ properties: { a: { $ref: "#/x" } }, x: { title: "\u202e" } })).toBe(true);
    expect(isStrange({ properties: { a: { $ref: "#/$defs/x" }, $ref: { type: "string" } } })).toBe(true);
    expect(isStrange({ properties: { a: { $ref: "#/$defs/x" } }, $defs: { x: {} } })).toBe(false);
  });

  it("has no hidden field, and runs no pattern", () => {
    const made = forPeople({
      type: "object",
      properties: { consent: { type: "string", format: "hidden", title: " ", default: "yes" } },
      dependencies: { consent: { properties: { consent: { pattern: "^(a+)+$" } } } },
      unheard: { pattern: "^(a+)+$" },
    });
    expect(made).toEqual({ type: "object", properties: { consent: { type: "string", default: "yes" } } });
  });
});
