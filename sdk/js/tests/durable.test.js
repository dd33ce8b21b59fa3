// Durable tools: a test scripts the ends of their waits, and sees what they asked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Failed, jsonSchema, plugin, tool, WaitError } from "../src/index.js";
import {
  answered,
  approved,
  declarations,
  denied,
  expired,
  received,
  returned,
  run,
} from "../src/testing.js";

Object.assign(globalThis, { TOOLGATE_ENGINE: "quickjs" });
const { serve } = await import("../src/guest.js");

const response = {
  type: "object",
  properties: { environment: { type: "string" } },
  required: ["environment"],
};

/** @type {(args: unknown, call: import("../src/index.d.ts").Call) => unknown} */
function deploy(_, call) {
  const { environment } = call.ask({
    prompt: "Where to?",
    response: jsonSchema(response, /** @type {any} */ (textual)),
    expiresMs: 60_000,
    who: ["group:ops"],
  });
  let plan = { environment, instances: 3 };
  try {
    plan = call.approve({
      prompt: "Deploy?",
      subject: plan,
      risk: "high",
      editable: ["instances"],
      quorum: 2,
    });
  } catch (error) {
    if (error instanceof WaitError && error.reason === "expired") return "nobody was there";
    throw error;
  }
  call.sleep(5000);
  const { decision, data } = call.choose({ prompt: "Healthy?", choices: ["yes", "no"] });
  return [plan, decision, data ?? null];
}

/** A schema of a library, which reads an object with a text. */
const textual = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (/** @type {any} */ value) =>
      typeof value.environment === "string"
        ? { value: { environment: value.environment.trim() } }
        : { issues: [{ message: "must be a string", path: ["environment"] }] },
  },
};

const base = { name: "deploy", description: "Deploys.", run: deploy };
const tools = plugin([tool({ ...base, durable: true, expiresMs: 9, contextKeys: [] })]);
const live = answered({ environment: " live " });
const waiting = (/** @type {import("../src/testing.d.ts").End[]} */ ...waits) =>
  run(tools, "deploy", {}, { waits });

test("answers reach the tool in order", async () => {
  const { result, waits } = await waiting(live, approved(), answered({ decision: "yes", data: 7 }));
  const subject = { environment: "live", instances: 3 };
  assert.deepEqual(result, [subject, "yes", 7]);
  assert.deepEqual(waits, [
    { kind: "ask", question: { prompt: "Where to?", response, expires_ms: 60_000, who: ["group:ops"] } },
    {
      kind: "approve",
      question: { prompt: "Deploy?", subject, risk: "high", editable: ["instances"], quorum: 2 },
    },
    { kind: "sleep", ms: 5000 },
    { kind: "ask", question: { prompt: "Healthy?", responses: ["yes", "no"] } },
  ]);
});

test("denial, expiry and edit differ", async () => {
  const denial = await waiting(live, denied("not today"));
  assert.deepEqual([denial.failure, denial.message], ["failed", "a person denied it: not today"]);
  assert.equal((await waiting(denied())).message, "a person denied it");
  assert.equal((await waiting(expired())).message, "nobody answered in time");
  assert.equal((await waiting(live, expired())).result, "nobody was there");
  const edited = { environment: "live", instances: 1 };
  assert.deepEqual((await waiting(live, approved(edited), answered({ decision: "no" }))).result, [
    edited,
    "no",
    null,
  ]);
  assert.equal(
    (await waiting(answered({ environment: 1 }))).message,
    "the answer cannot be read: /environment: must be a string",
  );
});

test("an error of a wait says what happened, with the comment", async () => {
  /** @type {WaitError[]} */
  const caught = [];
  const body = (/** @type {unknown} */ _, /** @type {any} */ call) => {
    try {
      call.ask({ prompt: "?" });
    } catch (error) {
      caught.push(/** @type {WaitError} */ (error));
    }
  };
  const asks = plugin([tool({ ...base, durable: true, run: body })]);
  await run(asks, "deploy", {}, { waits: [denied("no")] });
  await run(asks, "deploy", {}, { waits: [expired()] });
  await run(asks, "deploy");
  assert.deepEqual(
    caught.map(({ reason, comment }) => [reason, comment]),
    [
      ["denied", "no"],
      ["expired", undefined],
      ["not-granted", undefined],
    ],
  );
  assert.ok(caught.every((error) => error instanceof Failed && error.name === "WaitError"));
});

const health = {
  type: "object",
  properties: { healthy: { type: "boolean" } },
  required: ["healthy"],
};

/** A schema of a library, which reads a report. */
const reported = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (/** @type {any} */ value) =>
      typeof value.healthy === "boolean"
        ? { value: { fine: value.healthy } }
        : { issues: [{ message: "must be a boolean", path: ["healthy"] }] },
  },
};

const watch = plugin([
  tool({
    ...base,
    durable: true,
    run: (_, call) => {
      const schema = jsonSchema(health, /** @type {any} */ (reported));
      const about = { prompt: "The health", expiresMs: 60_000, signal: "health", metadata: { job: 7 } };
      return [call.awaitExternal({ ...about, schema }), call.awaitExternal({ prompt: "Anything" })];
    },
  }),
]);
const watching = (/** @type {import("../src/testing.d.ts").End[]} */ ...waits) =>
  run(watch, "deploy", {}, { waits });

test("an external result reaches the tool", async () => {
  const { result, waits } = await watching(received({ healthy: true }), received([1]));
  assert.deepEqual(result, [{ fine: true }, [1]]);
  const about = { prompt: "The health", expires_ms: 60_000, name: "health", metadata: { job: 7 } };
  assert.deepEqual(waits, [
    { kind: "awaitExternal", question: { ...about, schema: health } },
    { kind: "awaitExternal", question: { prompt: "Anything" } },
  ]);
});

test("an external wait without a result fails", async () => {
  assert.equal((await watching(expired())).message, "nobody answered in time");
  assert.equal(
    (await watching(received({ healthy: 1 }))).message,
    "the answer cannot be read: /healthy: must be a boolean",
  );
  for (const other of [answered({ healthy: true }), approved({ healthy: true })])
    assert.match(
      (await watching(other)).message ?? "",
      /^the test does not answer this question: {"prompt":"The health"/,
    );
  assert.match((await waiting(received({ environment: "live" }))).message ?? "", /does not answer/);
});

const calls = [
  { tool: "ledger_post", arguments: { amount: 5 } },
  { tool: "ledger_read", arguments: {} },
];
const post = plugin([tool({ ...base, durable: true, run: (_, call) => call.callTools(calls) })]);
/** @type {import("../src/index.d.ts").Returned[]} */
const ends = [
  { ok: true, result: 7, trusted: false },
  { ok: false, error: { code: "denied", message: "a person denied it" } },
];

test("the results of other tools reach the tool", async () => {
  const { result, waits } = await run(post, "deploy", {}, { waits: [returned(...ends)] });
  assert.deepEqual(result, ends);
  assert.deepEqual(waits, [{ kind: "callTools", question: { calls } }]);
});

test("a call of other tools without a script fails the call", async () => {
  for (const waits of [[], [answered([])], [approved()]]) {
    const { message } = await run(post, "deploy", {}, { waits });
    assert.match(message ?? "", /^the test does not answer this question: {"calls":/);
  }
  assert.match((await waiting(returned())).message ?? "", /does not answer/);
});

test("a wait without a script fails the call", async () => {
  assert.match(
    (await waiting(live)).message ?? "",
    /^the test does not answer this question: \{"prompt":"Deploy\?"/,
  );
  assert.equal((await waiting(live, live)).failure, "failed", "an answer is no approval");
});

test("a tool that is not durable cannot wait", async () => {
  const doze = (/** @type {unknown} */ _, /** @type {any} */ call) => call.sleep(1000);
  for (const body of [deploy, doze]) {
    const hasty = plugin([tool({ ...base, run: body })]);
    const { message } = await run(hasty, "deploy", {}, { waits: [live] });
    assert.match(message ?? "", /only a durable tool can wait .* durable: true/);
  }
});

test("mistakes in a question are errors of the author", async () => {
  const failing = async (/** @type {(call: any) => unknown} */ ask) => {
    const body = (/** @type {unknown} */ _, /** @type {any} */ call) => ask(call);
    return (await run(plugin([tool({ ...base, durable: true, run: body })]), "deploy")).message;
  };
  assert.match(
    (await failing((call) => call.ask({ prompt: "?", subject: 1 }))) ?? "",
    /^TypeError: a question has no subject; it has prompt/,
  );
  assert.match(
    (await failing((call) => call.awaitExternal({ prompt: "?", who: [] }))) ?? "",
    /^TypeError: a question has no who; it has prompt, expiresMs, schema, signal, metadata/,
  );
  assert.match((await failing((call) => call.sleep(-1))) ?? "", /^RangeError: a sleep of -1 ms/);
  assert.match((await failing((call) => call.sleep(Number.NaN))) ?? "", /^RangeError/);
});

test("the declaration has the options of a tool that waits", () => {
  assert.deepEqual(declarations(tools)[0]?.options, { durable: true, expires_ms: 9, context_keys: [] });
  for (const wrong of [
    { expiresMs: 9 },
    { durable: false, contextKeys: [] },
    { durable: true, prompt: "?" },
    { durable: 1 },
  ])
    assert.throws(() => plugin([tool(/** @type {any} */ ({ ...base, ...wrong }))]), /declarations are wrong/);
});

const request = { id: "c", tool: "deploy", arguments: "{}", idempotencyKey: "k", attempt: 1, scope: "{}" };

test("a component gets the interface's errors in both forms", () => {
  const original = globalThis.console;
  /** @type {unknown[]} */
  const asked = [];
  const host = { log: () => {} };
  const durable = {
    ask: (/** @type {string} */ question) => {
      asked.push(JSON.parse(question).prompt);
      return asked.length === 1 ? '{"environment":"live"}' : '{"decision":"yes"}';
    },
    approve: (/** @type {string} */ question) => JSON.stringify(JSON.parse(question).subject),
    sleep: (/** @type {number} */ ms) => asked.push(ms),
  };
  const { server } = serve(tools, host, durable);
  assert.deepEqual(JSON.parse(String(server.run(request))), [
    { environment: "live", instances: 3 },
    "yes",
    null,
  ]);
  assert.deepEqual(asked, ["Where to?", 5000, "Healthy?"]);
  for (const thrown of [{ tag: "denied", val: null }, { payload: { tag: "denied", val: undefined } }]) {
    const { server } = serve(tools, host, {
      ...durable,
      ask: () => {
        throw thrown;
      },
    });
    assert.throws(() => server.run(request), { tag: "failed", val: "a person denied it" });
  }
  globalThis.console = original;
});

test("a component waits for an external system", () => {
  const original = globalThis.console;
  const { server } = serve(
    watch,
    { log: () => {} },
    {
      awaitExternal: (/** @type {string} */ question) =>
        JSON.parse(question).name === "health" ? '{"healthy":false}' : "7",
    },
  );
  assert.deepEqual(JSON.parse(String(server.run(request))), [{ fine: false }, 7]);
  globalThis.console = original;
});

test("a component calls other tools", () => {
  const original = globalThis.console;
  const callTools = (/** @type {string} */ request) => {
    assert.deepEqual(JSON.parse(request), { calls });
    return JSON.stringify(ends);
  };
  const { server } = serve(post, { log: () => {} }, { callTools });
  assert.deepEqual(JSON.parse(String(server.run(request))), ends);
  globalThis.console = original;
});

test("only a component with a durable tool imports the interface", () => {
  assert.throws(() => serve(tools, {}), /deploy: a durable tool needs "toolgate": \{"durable": true\}/);
  const hasty = plugin([tool(base)]);
  assert.throws(() => serve(hasty, {}, {}), /no tool is durable: remove "durable" from package.json/);
});
