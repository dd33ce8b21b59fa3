// The JSON Schema validator of tests. Each row is a keyword.

import assert from "node:assert/strict";
import { test } from "node:test";
import { misfits } from "../src/native/json-schema.js";

const D07 = "http://json-schema.org/draft-07/schema#";
const D2019 = "https://json-schema.org/draft/2019-09/schema";
const D2020 = "https://json-schema.org/draft/2020-12/schema";

/**
 * @type {[Parameters<typeof misfits>[0], unknown[], [unknown, string][]][]} A schema, valid values, and invalid ones
 * with reasons.
 */
const rows = [
  [true, [1], []],
  [{ type: ["string", "null"] }, ["", null], [[1, "/: must be of type string or null"]]],
  [
    { type: "integer" },
    [3, -0, 1e3],
    [
      [3.5, "/: must be of type integer"],
      [true, "/: must be of type integer"],
    ],
  ],
  [
    { type: "object" },
    [{}],
    [
      [[], "/: must be of type object"],
      [null, "/: must be of type object"],
    ],
  ],
  [{ enum: [1, { a: [0] }] }, [1, { a: [0] }], [["1", '/: must be one of 1, {"a":[0]}']]],
  [{ const: null }, [null], [[0, "/: must be null"]]],
  [
    { minimum: 1, exclusiveMaximum: 3 },
    [1, 2.5, "x"],
    [
      [0, "/: must be at least 1"],
      [3, "/: must be less than 3"],
    ],
  ],
  [
    { exclusiveMinimum: 1, maximum: 3 },
    [1.5, 3],
    [
      [1, "/: must be more than 1"],
      [4, "/: must be at most 3"],
    ],
  ],
  [{ multipleOf: 0.1 }, [0.3, 7], [[0.25, "/: must be a multiple of 0.1"]]],
  [
    { minLength: 2, maxLength: 2 },
    ["😀😀", 1],
    [
      ["😀", "/: its characters are at least 2"],
      ["abc", "/: its characters are at most 2"],
    ],
  ],
  [{ pattern: "^\\p{L}+$" }, ["ä", 1], [["1", '/: must match "^\\\\p{L}+$"']]],
  [
    { minItems: 1, maxItems: 2 },
    [[1], {}],
    [
      [[], "/: its items are at least 1"],
      [[1, 2, 3], "/: its items are at most 2"],
    ],
  ],
  [
    { uniqueItems: true },
    [[1, "1", true, {}]],
    [[[{ a: 1 }, 2, { a: 1 }], "/: has an item twice: uniqueItems is true"]],
  ],
  [
    { minProperties: 1, maxProperties: 1 },
    [{ a: 1 }, []],
    [
      [{}, "/: its members are at least 1"],
      [{ a: 1, b: 2 }, "/: its members are at most 1"],
    ],
  ],
  [{ required: ["a/b"] }, [{ "a/b": undefined }, 1], [[{}, "/a~1b: is missing"]]],
  [{ dependentRequired: { a: ["b"] } }, [{}, { a: 1, b: 2 }], [[{ a: 1 }, "/b: is missing"]]],
  [
    { dependentSchemas: { a: { maxProperties: 1 } } },
    [{ a: 1 }],
    [[{ a: 1, b: 2 }, "/: its members are at most 1"]],
  ],
  [
    { properties: { a: { type: "null" } }, patternProperties: { "^x": true }, additionalProperties: false },
    [{ a: null, x1: 1 }, 1],
    [
      [{ a: 1 }, "/a: must be of type null"],
      [{ A: null }, "/A: is not allowed"],
      [{ toString: 1 }, "/toString: is not allowed"],
    ],
  ],
  [{ patternProperties: { "^x": { type: "null" } } }, [{ a: 1 }], [[{ x1: 1 }, "/x1: must be of type null"]]],
  [{ propertyNames: { maxLength: 1 } }, [{ a: 1 }], [[{ ab: 1 }, "/ab: its characters are at most 1"]]],
  [
    { prefixItems: [{ type: "null" }], items: { type: "string" } },
    [[null, "a"], []],
    [
      [[1], "/0: must be of type null"],
      [[null, 1], "/1: must be of type string"],
    ],
  ],
  [
    { contains: { const: 1 }, maxContains: 1 },
    [[1, 2]],
    [
      [[2], "/: has 0 items of those that it must contain"],
      [[1, 1], "/: has 2 items of those that it must contain"],
    ],
  ],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1], [[3, "/: must be at most 2"]]],
  [{ anyOf: [{ type: "null" }, { type: "string" }] }, [null, ""], [[1, "/: fits none of 2 schemas"]]],
  [{ oneOf: [{ minimum: 1 }, { maximum: 2 }] }, [0, 3], [[1, "/: fits 2 of 2 schemas, not one"]]],
  [{ not: { const: 1 } }, [2], [[1, "/: is what it must not be"]]],
  [
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    { if: { minimum: 0 }, then: { maximum: 9 }, else: { const: -1 } },
    [9, -1],
    [
      [10, "/: must be at most 9"],
      [-2, "/: must be -1"],
    ],
  ],
  [
    { $ref: "#/$defs/a~1b%20", $defs: { "a/b ": { type: "array", items: { $ref: "#" } } } },
    [[], [[[]]]],
    [[[[1]], "/0/0: must be of type array"]],
  ],
  // Each keyword as its draft has it.
  [
    { $schema: D07, $ref: "#/$defs/a", maximum: 3, $defs: { a: { minimum: 1 } } },
    [9],
    [[0, "/: must be at least 1"]],
  ],
  [{ $schema: D2019, $ref: "#/$defs/a", maximum: 3, $defs: { a: {} } }, [3], [[9, "/: must be at most 3"]]],
  [{ $schema: D2019, prefixItems: [false] }, [[1]], []],
  [{ $schema: D2020, prefixItems: [{ type: "null" }] }, [[null]], [[[1], "/0: must be of type null"]]],
  [
    { $schema: D07, items: [{ type: "null" }], additionalItems: { type: "string" } },
    [[null, "a"]],
    [
      [[1], "/0: must be of type null"],
      [[null, 1], "/1: must be of type string"],
    ],
  ],
  [{ $schema: D2019, items: { type: "null" } }, [[null]], [[[1], "/0: must be of type null"]]],
  [
    { $schema: D07, dependencies: { a: ["b"], c: { maxProperties: 1 } }, dependentRequired: { a: ["d"] } },
    [{ a: 1, b: 1 }],
    [
      [{ a: 1 }, "/b: is missing"],
      [{ c: 1, d: 1 }, "/: its members are at most 1"],
    ],
  ],
  [
    { $schema: D07, contains: { const: 1 }, maxContains: 1 },
    [[1, 1]],
    [[[2], "/: has 0 items of those that it must contain"]],
  ],
];

for (const [schema, fitting, wrong] of rows) {
  test(JSON.stringify(schema), () => {
    for (const value of fitting) assert.deepEqual(misfits(schema, value), [], JSON.stringify(value));
    for (const [value, said] of wrong)
      assert.deepEqual(misfits(schema, value), [said], JSON.stringify(value));
  });
}
