import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Json } from "@toolgate/sdk";
import { run } from "@toolgate/sdk/testing";
import plugin from "../plugin.ts";

interface Example {
  tool: string;
  arguments: Json;
  result?: Json;
  failure?: string;
}

test("the examples are right", async () => {
  const examples: Example[] = JSON.parse(readFileSync(new URL("../examples.json", import.meta.url), "utf8"));
  for (const { tool, arguments: args, result, failure } of examples) {
    const outcome = await run(plugin, tool, args);
    assert.deepEqual([outcome.result, outcome.failure], [result, failure], tool);
  }
});

/** [changes, the document made from { a: { b: [1, 2] } }, or a part of the failure] */
const CHANGES: [Json[], Json | RegExp][] = [
  [[{ set: "", value: 5 }], 5],
  [[{ set: "/a/b/0", value: 9 }], { a: { b: [9, 2] } }],
  [[{ set: "/a/b/2", value: 3 }], { a: { b: [1, 2, 3] } }],
  [[{ set: "/a/b/4", value: 3 }], /no place 4; it has 2 entries/],
  [[{ set: "/a/b/01", value: 3 }], /no place 01/],
  [[{ set: "/a/b/0/x", value: 3 }], /1 has no members/],
  [[{ remove: "/a/x" }], /\/a\/x: there is no value/],
  [[{ remove: "" }], /the whole document/],
  [[{ move: "/a/b", to: "/b" }], { a: {}, b: [1, 2] }],
  [[{ move: "/a", to: "/a/b" }], /cannot be moved into itself/],
  [[{ move: "/a", to: "a" }], /is not a JSON Pointer/],
  [[{ copy: "/a" }], /\/changes\/0: fits none of/],
];

for (const [changes, expected] of CHANGES) {
  test(`changes ${JSON.stringify(changes)}`, async () => {
    const outcome = await run(plugin, "json_change", { document: { a: { b: [1, 2] } }, changes });
    if (expected instanceof RegExp) {
      assert.equal(outcome.failure, "invalid-arguments");
      assert.match(outcome.message ?? "", expected);
    } else {
      assert.deepEqual(outcome.result, expected);
    }
  });
}

test("names of inherited members are names like others", async () => {
  const args = '{"document":{},"changes":[{"set":"/__proto__/polluted","value":1}]}';
  const outcome = await run(plugin, "json_change", JSON.parse(args));
  assert.equal(JSON.stringify(outcome.result), '{"__proto__":{"polluted":1}}');
  assert.equal(Object.hasOwn(Object.prototype, "polluted"), false);
  assert.deepEqual((await run(plugin, "json_get", { document: {}, values: { it: "/toString" } })).result, {
    it: null,
  });
});

/** [schema, document, the violated keywords] */
const SCHEMAS: [Json, Json, string[]][] = [
  [true, 1, []],
  [false, 1, [""]],
  [{ type: ["integer", "null"] }, 1.5, ["/type"]],
  [{ type: "array" }, [], []],
  [{ enum: [{ a: 1, b: 2 }] }, { b: 2, a: 1 }, []],
  [{ const: [1] }, [2], ["/const"]],
  [{ minimum: 2, exclusiveMaximum: 2, multipleOf: 0.5 }, 2, ["/exclusiveMaximum"]],
  [{ multipleOf: 0.1 }, 0.3, []],
  [{ minLength: 2, maxLength: 2 }, "😀😀", []],
  [{ minItems: 1, uniqueItems: true }, [{ a: 1 }, { a: 1 }], ["/uniqueItems"]],
  [{ pattern: "^\\d+$" }, "1a", ["/pattern"]],
  [
    { properties: { a: { type: "string" } }, additionalProperties: false },
    { a: 1, b: 2 },
    ["/properties/a/type", "/additionalProperties"],
  ],
  [
    { patternProperties: { "^x": { type: "null" } }, additionalProperties: { type: "number" } },
    { x1: null, y: 1 },
    [],
  ],
  [
    { prefixItems: [{ type: "null" }], items: { type: "string" } },
    [1, "a", 2],
    ["/prefixItems/0/type", "/items/type"],
  ],
  [{ allOf: [{ minimum: 1 }, { maximum: 0 }] }, 0.5, ["/allOf/0/minimum", "/allOf/1/maximum"]],
  [{ anyOf: [{ type: "null" }, { type: "string" }] }, 1, ["/anyOf"]],
  [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 3, ["/oneOf"]],
  [{ not: {} }, 3, ["/not"]],
  [{ $defs: { n: { type: "number" } }, items: { $ref: "#/$defs/n" } }, ["x"], ["/items/$ref/type"]],
  [{ $ref: "https://example.org/other" }, 1, ["/$ref"]],
  [{ $ref: "#" }, 1, [`${"/$ref".repeat(201)}`]],
];

for (const [schema, document, keywords] of SCHEMAS) {
  test(`the schema ${JSON.stringify(schema)} over ${JSON.stringify(document)}`, async () => {
    const { result, message } = await run(plugin, "json_validate", { schema, document });
    const report = result as { problems: { keyword: string }[] } | undefined;
    assert.deepEqual(
      report?.problems.map(({ keyword }) => keyword),
      keywords,
      message,
    );
  });
}

test("keywords that were not looked at are named", async () => {
  const { result } = await run(plugin, "json_validate", { schema: { if: {}, title: "t" }, document: 1 });
  assert.deepEqual(result, { valid: true, problems: [], ignored: ["if"] });
});

test("rows can be cut, and shown once each", async () => {
  const rows = [{ a: 2, b: 1 }, { b: 1, a: 2 }, { a: 1 }, { a: null }, {}];
  const outcome = async (more: object) => (await run(plugin, "json_rows", { rows, ...more })).result;
  assert.deepEqual(await outcome({ distinct: true, limit: 2 }), [{ b: 1, a: 2 }, { a: 1 }]);
  assert.deepEqual(await outcome({ where: [{ at: "/a", is: "absent" }] }), [{ a: null }, {}]);
  assert.deepEqual(await outcome({ sort: [{ at: "/a", descending: true }] }), rows);
});

test("long work reports how far it is, and stops when it should", async () => {
  const rows = Array.from({ length: 25_000 }, (_, index) => ({ index }));
  const whole = await run(plugin, "json_rows", { rows, where: [{ at: "/index", is: "less", than: 1 }] });
  assert.deepEqual(
    [whole.result, whole.progress.map(({ fraction }) => fraction)],
    [[{ index: 0 }], [0.4, 0.8]],
  );
  const stopped = await run(plugin, "json_rows", { rows }, { stopRequested: true });
  assert.deepEqual([stopped.failure, stopped.progress.length], ["failed", 1]);
});

test("a flat document becomes itself again", async () => {
  const document = { a: [1, { "x/y": null }], empty: {}, none: [], "": "" };
  const { result } = await run(plugin, "json_flatten", { document });
  assert.deepEqual((await run(plugin, "json_flatten", { document: result, back: true })).result, document);
});
