import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sent } from "@toolgate/sdk/http";
import {
  answered,
  approved,
  denied,
  type End,
  expired,
  received,
  returned,
  run,
} from "@toolgate/sdk/testing";
import plugin from "../plugin.ts";

const live = answered({ environment: "live" });
const plan = { version: "1.4.2", environment: "live", instances: 2 };

/** A service, and the requests that it got: the URL and the body of each. */
const service = (status = 201) => {
  const sent: [string, unknown][] = [];
  const http = ({ url, body }: Sent) => {
    sent.push([url, JSON.parse(new TextDecoder().decode(body))]);
    return { status };
  };
  return { sent, http, config: { service: "https://deploy.example/api/" } };
};

const rollOut = (others: { signal?: string; deploy?: boolean }, ...ends: End[]) => {
  const { sent, ...options } = service();
  const waits = [live, ...ends];
  const ran = run(plugin, "roll_out_ts", { version: "1.4.2", ...others }, { waits, ...options });
  return ran.then((ended) => ({ ...ended, sent }));
};

test("an approved plan is rolled out and checked", async () => {
  for (const [decision, state] of [
    ["healthy", "done"],
    ["broken", "rolled back"],
  ]) {
    const { result, waits } = await rollOut({}, approved(plan), answered({ decision }));
    assert.deepEqual(result, { state, plan });
    assert.deepEqual(
      waits.map(({ kind }) => kind),
      ["ask", "approve", "sleep", "ask"],
    );
    assert.deepEqual(waits[2], { kind: "sleep", ms: 5000 });
  }
});

test("a tool that requires approval deploys the plan", async () => {
  const carriedOut = returned({ ok: true, result: { instances: 2 } });
  const done = await rollOut({ deploy: true }, approved(plan), carriedOut, answered({ decision: "healthy" }));
  assert.deepEqual(done.result, { state: "done", plan });
  assert.deepEqual(done.sent, [["https://deploy.example/api/builds", { version: "1.4.2" }]]);
  const calls = [{ tool: "roll_out_ts_deploy", arguments: plan }];
  assert.deepEqual(done.waits[2], { kind: "callTools", question: { calls } });
  const refused = returned({ ok: false, error: { code: "denied", message: "a person denied it" } });
  const { result } = await rollOut({ deploy: true }, approved(plan), refused);
  assert.deepEqual(result, { state: "not deployed", reason: "a person denied it", plan });
  const { sent, ...options } = service();
  assert.deepEqual((await run(plugin, "roll_out_ts_deploy", plan, options)).result, { instances: 2 });
  assert.deepEqual(sent, [["https://deploy.example/api/deployments", plan]]);
  const { http, config } = service(503);
  assert.equal((await run(plugin, "roll_out_ts_deploy", plan, { http, config })).failure, "unavailable");
});

test("reported health decides the state", async () => {
  const ends: [End, string][] = [
    [received({ healthy: true }), "done"],
    [received({ healthy: false, detail: "no answer" }), "rolled back"],
    [expired(), "rolled back"],
  ];
  for (const [end, state] of ends) {
    const { result, waits } = await rollOut({ signal: "health" }, approved(plan), end);
    assert.deepEqual(result, { state, plan });
    const wait = waits.at(-1);
    assert.ok(wait?.kind === "awaitExternal");
    const { name, metadata } = wait.question;
    assert.deepEqual([name, metadata], ["health", { version: "1.4.2", environment: "live" }]);
  }
});

test("a denied plan is a result", async () => {
  const { result } = await rollOut({}, denied("not on a Friday"));
  assert.deepEqual(result, { state: "rejected", comment: "not on a Friday" });
});

test("a plan that nobody decides about fails the call", async () => {
  const { failure, message } = await rollOut({}, expired());
  assert.deepEqual([failure, message], ["failed", "nobody answered in time"]);
});
