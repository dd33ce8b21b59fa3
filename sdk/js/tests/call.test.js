// Calls: arguments, results, failures, progress, logs.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { Failed, InvalidArguments, jsonSchema, plugin, tool, Unavailable } from "../src/index.js";
import { run } from "../src/testing.js";

/** A plugin with one tool, `t`. */
const one = (/** @type {any} */ body, /** @type {any} */ parameters = { type: "object" }) =>
  plugin([tool({ name: "t", description: "Does it.", parameters, run: body })]);

test("the schema checks arguments and reports the place of a fault", async () => {
  const parameters = z.object({
    items: z.array(z.object({ "a/b~c": z.int() })),
    at: z.coerce.date().optional(),
  });
  const tools = one(
    (/** @type {any} */ { items }) => items.length,
    jsonSchema({ type: "object" }, parameters),
  );
  assert.equal((await run(tools, "t", { items: [{ "a/b~c": 1 }] })).result, 1);
  const { failure, message } = await run(tools, "t", { items: [{ "a/b~c": 1 }, { "a/b~c": "x" }] });
  assert.equal(failure, "invalid-arguments");
  assert.match(message ?? "", /^\/items\/1\/a~1b~0c: .*expected/);
});

test("the function gets what the schema makes of the arguments", async () => {
  const parameters = z.object({ name: z.string().trim(), times: z.int().default(2) });
  assert.equal(
    (
      await run(
        one((/** @type {any} */ { name, times }) => name.repeat(times), parameters),
        "t",
        { name: " ab " },
      )
    ).result,
    "abab",
  );
});

test("checks that take a while are waited for", async () => {
  const parameters = jsonSchema(
    { type: "object" },
    z.object({ n: z.number().refine(async (n) => n > 1, "too small") }),
  );
  assert.equal(
    (
      await run(
        one((/** @type {any} */ { n }) => n, parameters),
        "t",
        { n: 2 },
      )
    ).result,
    2,
  );
  assert.equal(
    (
      await run(
        one((/** @type {any} */ { n }) => n, parameters),
        "t",
        { n: 1 },
      )
    ).message,
    "/n: too small",
  );
});

/** @type {[string, () => unknown, object][]} */
const ENDS = [
  ["nothing is null", () => undefined, { ok: true, result: null }],
  ["a promise", async () => [1], { ok: true, result: [1] }],
  [
    "what has no JSON form",
    () => () => 1,
    { failure: "failed", message: "the tool returned a function, which has no JSON form" },
  ],
  ...[Number.NaN, Number.NEGATIVE_INFINITY].map(
    (number) =>
      /** @type {[string, () => unknown, object]} */ ([
        `${number} within`,
        () => ({ list: [1, { "a/b": { "": number } }], same: [] }),
        {
          failure: "failed",
          message: `/list/1/a~1b/: ${number} has no form in JSON; give null where there is no number`,
        },
      ]),
  ),
  [
    "NaN itself",
    () => Number.NaN,
    { failure: "failed", message: "/: NaN has no form in JSON; give null where there is no number" },
  ],
  [
    "half of a character",
    () => ["😀", "\ud83d"],
    { failure: "failed", message: "/1: a text has a lone surrogate, which is not Unicode" },
  ],
  [
    "half of a character in a name",
    () => ({ "\ude00": 1 }),
    { failure: "failed", message: "/\ufffd: a text has a lone surrogate, which is not Unicode" },
  ],
  [
    "half of a character in what is said",
    () => fail(new Failed("😀 \ud83d!")),
    { failure: "failed", message: "😀 \ufffd!", log: [] },
  ],
  [
    "a failure of arguments",
    () => fail(new InvalidArguments("no")),
    { failure: "invalid-arguments", message: "no", log: [] },
  ],
  ["a failure", () => fail(new Failed("no")), { failure: "failed", message: "no", log: [] }],
  [
    "unavailable, later",
    async () => fail(new Unavailable("no")),
    { failure: "unavailable", message: "no", log: [] },
  ],
  [
    "an error with a cause",
    () => fail(new TypeError("no", { cause: new Error("why") })),
    { failure: "failed", message: "TypeError: no: Error: why" },
  ],
  ["a text", () => fail("no"), { failure: "failed", message: "no" }],
  ["nothing", () => fail(undefined), { failure: "failed", message: "the tool threw nothing that says why" }],
];

function fail(/** @type {unknown} */ error) {
  throw error;
}

for (const [what, body, expected] of ENDS) {
  test(`a call ends: ${what}`, async () => {
    const outcome = await run(one(body), "t");
    assert.deepEqual({ ...outcome, ...expected }, outcome);
  });
}

test("the stack of an unexpected error is logged line by line", async () => {
  const { log } = await run(
    one(async () => fail(new RangeError("far"))),
    "t",
  );
  assert.deepEqual(log[0], { level: "error", message: "RangeError: far" });
  assert.ok(log.some(({ message }) => message.includes("call.test.js")));
  assert.ok(log.every(({ message }) => !message.includes("\n")));
});

test("a call knows who asked, and whether to stop", async () => {
  let asked = 0;
  const body = (/** @type {any} */ _, /** @type {import("../src/index.js").Call} */ call) => {
    while (!call.stopRequested()) call.progress(`step ${asked}`, asked / 3, { asked });
    return [
      call.id,
      call.tool,
      call.attempt,
      call.idempotencyKey,
      call.scope.caller,
      call.scope.approver ?? "nobody",
    ];
  };
  const outcome = await run(
    one(body),
    "t",
    {},
    { id: "c", attempt: 2, scope: { caller: "me" }, stopRequested: () => ++asked === 3 },
  );
  assert.deepEqual(outcome.result, ["c", "t", 2, "key-of-c", "me", "nobody"]);
  assert.deepEqual(outcome.progress, [
    { message: "step 1", fraction: 1 / 3, data: { asked: 1 } },
    { message: "step 2", fraction: 2 / 3, data: { asked: 2 } },
  ]);
});

test("the console writes to the log of its own call", async () => {
  const tools = one(async (/** @type {any} */ { name }) => {
    await null;
    console.debug(name, { n: 1 }, undefined);
  });
  const [a, b] = await Promise.all(["a", "b"].map((name) => run(tools, "t", { name })));
  assert.deepEqual(a?.log, [{ level: "debug", message: 'a {"n":1} undefined' }]);
  assert.deepEqual(b?.log, [{ level: "debug", message: 'b {"n":1} undefined' }]);
});

test("half of a character is replaced in what is reported", async () => {
  const body = (/** @type {any} */ _, /** @type {import("../src/index.js").Call} */ call) => {
    call.progress("\ud83d 1");
    call.log("info", "2 \ude00");
    console.info("3 \ud83d\ud83d\ude00");
    throw new Error("4 \ud83d");
  };
  const { progress, log, message } = await run(one(body), "t");
  assert.deepEqual(progress, [{ message: "\ufffd 1", fraction: undefined, data: undefined }]);
  assert.deepEqual(
    log.slice(0, 3).map(({ message }) => message),
    ["2 \ufffd", "3 \ufffd😀", "Error: 4 \ufffd"],
  );
  assert.equal(message, "Error: 4 \ufffd");
});

test("arguments and results are checked as a host does", async () => {
  const parameters = {
    type: "object",
    properties: { n: { type: "integer", maximum: 100 } },
    required: ["n"],
    additionalProperties: false,
  };
  let ran = 0;
  const tools = plugin([
    tool({
      name: "t",
      description: "Does it.",
      parameters,
      result: z.object({ n: z.int().max(50) }),
      run: ({ n }) => {
        ran += 1;
        return { n: Number(n) };
      },
    }),
  ]);
  for (const [args, wrong] of /** @type {[object, string][]} */ ([
    [{ n: 101 }, "/n: must be at most 100"],
    [{ n: 1.5 }, "/n: must be of type integer"],
    [{}, "/n: is missing"],
    [{ n: 1, N: 2 }, "/N: is not allowed"],
  ])) {
    const { failure, message } = await run(tools, "t", args);
    assert.deepEqual(
      [failure, message],
      ["invalid-arguments", `the arguments do not fit the tool's schema: ${wrong}`],
    );
  }
  assert.equal(ran, 0);
  assert.deepEqual((await run(tools, "t", { n: 50 })).result, { n: 50 });
  const { failure, message } = await run(tools, "t", { n: 51 });
  assert.deepEqual(
    [failure, message],
    ["failed", "the result does not fit the tool's schema: /n: must be at most 50"],
  );
});

test("a test that asks for a missing tool gets an error", async () => {
  await assert.rejects(
    run(
      one(() => 1),
      "u",
    ),
    /runs no tool "u"; it runs t/,
  );
  await assert.rejects(run(/** @type {any} */ ({}), "t"), /the first argument must be the result of plugin/);
});
