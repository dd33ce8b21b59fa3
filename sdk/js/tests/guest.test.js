// The exports of the component, in the conventions of each engine. Building the examples tests the engines themselves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidArguments, plugin, tool } from "../src/index.js";

/** The bindings for an engine, which is a constant of the build. */
async function glue(/** @type {"quickjs" | "starlingmonkey"} */ engine) {
  Object.assign(globalThis, { TOOLGATE_ENGINE: engine });
  const { none, int64, fromInt64, payload } = await import(`../src/wasi/engine.js?${engine}`);
  return { none, int64, fromInt64, payload };
}

Object.assign(globalThis, { TOOLGATE_ENGINE: "quickjs" });
const { serve } = await import("../src/guest.js");

const request = { id: "c", tool: "t", arguments: '{"n":1}', idempotencyKey: "k", attempt: 1, scope: "{}" };

/** A host that records its calls. */
function host() {
  /** @type {unknown[][]} */
  const reported = [];
  return {
    reported,
    progress: (/** @type {unknown} */ update) => reported.push(["progress", update]),
    log: (/** @type {string[]} */ ...line) => reported.push(line),
  };
}

const one = (/** @type {any} */ run) => plugin([tool({ name: "t", description: "Does it.", run })]);

test("absent values, integers and errors have each engine's form", async () => {
  const quickjs = await glue("quickjs");
  const starlingmonkey = await glue("starlingmonkey");
  assert.deepEqual(
    [quickjs.none(undefined), starlingmonkey.none(undefined), starlingmonkey.none(0)],
    [null, undefined, 0],
  );
  assert.deepEqual([quickjs.int64(5), starlingmonkey.int64(5), starlingmonkey.fromInt64(-2n)], [5, 5n, -2]);
  const error = { tag: "other", val: "x" };
  assert.deepEqual(
    [quickjs.payload(error), starlingmonkey.payload({ payload: error }), quickjs.payload("closed")],
    [error, error, { tag: "closed" }],
  );
});

test("a call goes to its tool, with the host at hand", () => {
  const there = host();
  const original = globalThis.console;
  const { catalog, server } = serve(
    one((/** @type {any} */ { n }, /** @type {any} */ call) => {
      call.progress("half");
      console.warn("two\nlines");
      return [n, call.stopRequested()];
    }),
    there,
  );
  console.log("while it is built");
  assert.deepEqual(
    catalog.tools().map(({ name, executor }) => [name, executor]),
    [["t", "server"]],
  );
  assert.equal(server.run(request), "[1,false]");
  globalThis.console = original;
  const update = { message: "half", fraction: null, data: null };
  assert.deepEqual(there.reported, [
    ["progress", update],
    ["warn", "two"],
    ["warn", "lines"],
  ]);
});

test("the host's stop signal is passed on if the host has one", () => {
  const body = (/** @type {any} */ _, /** @type {any} */ call) => call.stopRequested();
  assert.equal(serve(one(body), { ...host(), stopRequested: () => true }).server.run(request), "true");
});

test("failures are thrown as the interface has them", () => {
  const body = () => {
    throw new InvalidArguments("no");
  };
  assert.throws(() => serve(one(body), host()).server.run(request), { tag: "invalid-arguments", val: "no" });
  assert.throws(() => serve(one(body), host()).server.run({ ...request, tool: "u" }), {
    tag: "failed",
    val: 'the plugin runs no tool "u"',
  });
});

test("QuickJS cannot wait, and says so before it would have to", () => {
  assert.throws(
    () =>
      serve(
        one(async () => 1),
        host(),
      ),
    /t: run is async, and QuickJS cannot wait/,
  );
  const promised = () => Promise.resolve(1);
  assert.throws(
    () => serve(one(promised), host()).server.run(request),
    (/** @type {any} */ failure) => failure.tag === "failed" && /"t" returned a promise/.test(failure.val),
  );
});

test("a main module without a plugin gets an explanation", () => {
  assert.throws(() => serve({}, host()), /no `export default plugin\(\[…\]\)`/);
});

test("QuickJS draws the same numbers at every attempt of a call", () => {
  const original = Math.random;
  try {
    const { server } = serve(
      one(() => Array.from({ length: 1000 }, Math.random)),
      host(),
    );
    const draws = (/** @type {string} */ idempotencyKey, attempt = 1) =>
      JSON.parse(String(server.run({ ...request, idempotencyKey, attempt })));
    const [first, second] = [draws("key/1"), draws("key/2")];
    assert.deepEqual(draws("key/1", 2), first);
    assert.equal(new Set([...first, ...second]).size, 2000);
    assert.ok(first.every((/** @type {number} */ number) => number >= 0 && number < 1));
    for (const numbers of [first, second]) {
      const mean =
        numbers.reduce((/** @type {number} */ sum, /** @type {number} */ next) => sum + next) / 1000;
      assert.ok(Math.abs(mean - 0.5) < 0.05, `they are spread evenly: ${mean}`);
    }
  } finally {
    Math.random = original;
  }
});
