// An author's declarations in the form of the host, and their mistakes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import * as z from "zod";
import * as zm from "zod/mini";
import { client, human, jsonSchema, plugin, provider, tool } from "../src/index.js";
import { declarations } from "../src/testing.js";

const run = () => null;
const base = { name: "t", description: "Does it." };

/** The findings about one tool. */
function findings(/** @type {any} */ make, /** @type {any} */ definition) {
  try {
    plugin([make({ ...base, ...definition })]);
    return [];
  } catch (error) {
    return String(/** @type {Error} */ (error).message)
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
}

test("plain schemas and those of libraries give equal parameters", () => {
  const plain = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
  const mini = zm.object({ text: zm.string() });
  const rows = {
    plain,
    typed: jsonSchema(plain),
    zod: z.object({ text: z.string() }),
    valibot: toStandardJsonSchema(v.object({ text: v.string() })),
    mini: jsonSchema(zm.toJSONSchema(mini, { io: "input" }), mini),
  };
  for (const [library, parameters] of Object.entries(rows)) {
    const [declared] = declarations(plugin([tool({ ...base, parameters, run })]));
    const { $schema, ...rest } = declared?.parameters ?? {};
    assert.deepEqual(rest, plain, library);
    // A plain schema is as the author wrote it.
    assert.equal(
      $schema,
      library === "mini" ? "https://json-schema.org/draft/2020-12/schema" : undefined,
      library,
    );
  }
});

test("the draft of a plain schema is kept", () => {
  for (const draft of [
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2020-12/schema",
  ]) {
    const plain = { $schema: draft, type: "object" };
    for (const parameters of [plain, jsonSchema(plain)]) {
      const [declared] = declarations(plugin([tool({ ...base, parameters, result: parameters, run })]));
      assert.deepEqual([declared?.parameters, declared?.options.result], [plain, plain]);
    }
  }
});

test("the host decides about the size of a schema", () => {
  assert.deepEqual(findings(tool, { run, parameters: { type: "object", title: "x".repeat(200_000) } }), []);
});

test("every option reaches the host under its own name", () => {
  const parameters = { type: "object", properties: { to: {}, cents: {} } };
  const tools = [
    tool({
      ...base,
      parameters,
      title: "It",
      result: z.int(),
      timeoutMs: 500,
      recovery: "ask",
      streaming: true,
      risk: "high",
      retention: { maxAgeTurns: 2, maxCount: 3, maxAgeDays: 90 },
      hints: { destructive: true, openWorld: false },
      approval: "requires-approval",
      prompt: "{to}?",
      expiresMs: 1000,
      onExpiry: "deny",
      editable: ["cents"],
      contextKeys: ["user"],
      run: () => 1,
    }),
    human({
      name: "h",
      description: "Asks.",
      responses: ["yes", "no"],
      response: { type: "string" },
      onExpiry: { answer: "x" },
    }),
    client({ name: "c", description: "Rings.", result: { type: "boolean" }, expiresMs: 5, streaming: true }),
    provider({ name: "p", description: "Searches.", retention: { neverEvict: true } }),
  ];
  const [server, asks, rings, searches] = declarations(plugin(tools));
  assert.deepEqual(server, {
    name: "t",
    description: "Does it.",
    parameters,
    executor: "server",
    approval: "requires-approval",
    streaming: true,
    options: {
      title: "It",
      result: { type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 },
      timeout_ms: 500,
      recovery: "ask",
      risk: "high",
      retention: { max_age_turns: 2, max_count: 3, max_age_days: 90 },
      hints: { destructive: true, open_world: false },
      prompt: "{to}?",
      expires_ms: 1000,
      on_expiry: "deny",
      editable: ["cents"],
      context_keys: ["user"],
    },
  });
  assert.deepEqual(asks?.options, {
    responses: ["yes", "no"],
    response: { type: "string" },
    on_expiry: { answer: "x" },
  });
  assert.deepEqual(asks?.parameters, { type: "object", properties: {}, additionalProperties: false });
  assert.deepEqual(rings?.options, { result: { type: "boolean" }, expires_ms: 5 });
  assert.deepEqual(
    [searches?.executor, searches?.options],
    ["provider", { retention: { never_evict: true } }],
  );
});

const GATED = { run, approval: "requires-approval", parameters: { type: "object", properties: { a: {} } } };

/** @type {[string, any, object, RegExp][]} */
const WRONG = [
  ["a name", tool, { run, name: "no spaces" }, /its name is 1 to 64/],
  ["no description", tool, { run, description: " " }, /description tells the model/],
  ["no function", tool, {}, /run is a function/],
  ["a function of nobody", human, { run }, /run: a human tool has none/],
  ["a gated question", human, { approval: "requires-approval" }, /approving it is circular/],
  ["a gated provider", provider, { approval: "requires-approval" }, /no moment to stop at/],
  ["a word for a gate", tool, { run, approval: true }, /approval is "auto" or/],
  [
    "parameters of no object",
    tool,
    { run, parameters: { type: "string" } },
    /the root of the JSON Schema says/,
  ],
  [
    "what JSON Schema cannot say",
    tool,
    { run, parameters: z.object({ at: z.date() }) },
    /its parameters: .*Date/,
  ],
  ["zod/mini", tool, { run, parameters: zm.object({}) }, /jsonSchema\(z.toJSONSchema/],
  ["an unknown option", tool, { run, timeout: 5 }, /timeout: is not known; known are .*timeoutMs/],
  ["an inherited word", tool, { run, toString: 5 }, /toString: is not known/],
  ["a prompt nobody sees", tool, { run, prompt: "?" }, /prompt: nobody is asked/],
  ["an expiry without a wait", tool, { run, expiresMs: 5 }, /expiresMs: nobody is asked/],
  ["a bound on what does not run", client, { timeoutMs: 5 }, /timeoutMs: a client tool has no such option/],
  ["a number", tool, { run, timeoutMs: 0.5 }, /timeoutMs is an integer from 1/],
  ["a word", tool, { run, risk: "huge" }, /risk is one of "low"/],
  ["edits of what is not there", tool, { ...GATED, editable: ["b"] }, /editable .*\(a\), not b/],
  ["edits of nothing", tool, { ...GATED, editable: [] }, /editable is "none"/],
  ["choices", human, { responses: ["a", "a"] }, /responses is a list of at most 16 different strings/],
  ["a hint", tool, { run, hints: { readonly: true } }, /hints has no readonly; it has readOnly/],
  ["a result", tool, { run, result: 5 }, /result is a schema/],
];

for (const [what, make, definition, expected] of WRONG) {
  test(`a declaration is refused: ${what}`, () => {
    const found = findings(make, definition);
    assert.equal(
      found.filter((finding) => expected.test(finding)).length,
      1,
      found.join("\n") || "nothing was found",
    );
  });
}

test("all mistakes are reported at once", () => {
  const tools = [tool({ ...base, run }), tool({ ...base, run }), human({ name: "?", description: "" })];
  assert.throws(
    () => plugin(tools),
    /\n {2}\?: its name[\s\S]*\n {2}\?: its description[\s\S]*\n {2}t: several tools have this name/,
  );
  assert.throws(
    () => plugin(/** @type {any} */ ([{ name: "x" }])),
    /takes a list of the results of tool\(\)/,
  );
});
