import assert from "node:assert/strict";
import { test } from "node:test";
import { Unavailable } from "@toolgate/sdk";
import type { Answer, Sent } from "@toolgate/sdk/http";
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
const carriedOut = returned({ ok: true, result: { instances: 2 } });

/** The answer of a service to GET requests. Without one, it is unreachable. */
type Health = Answer | undefined;

/** A service, and the requests that it got: the URL and the body of each. A GET request has no body. */
const service = (status = 201, health?: Health) => {
  const sent: [string, unknown][] = [];
  const http = ({ method, url, body }: Sent): Answer => {
    sent.push([url, body && JSON.parse(new TextDecoder().decode(body))]);
    if (method !== "GET") return { status };
    if (health === undefined) throw new Unavailable("it is away");
    return health;
  };
  return { sent, http, config: { service: "https://deploy.example/api/" } };
};

const rollOut = (others: { signal?: string; deploy?: boolean; health?: Health }, ...ends: End[]) => {
  const { health, ...given } = others;
  const { sent, ...options } = service(201, health);
  const waits = [live, ...ends];
  const ran = run(plugin, "roll_out_ts", { version: "1.4.2", ...given }, { waits, ...options });
  return ran.then((ended) => ({ ...ended, sent }));
};

/** The result of a rollout. Without a reason, it is done. */
const ended = (reason: string | undefined) =>
  reason === undefined ? { state: "done", plan } : { state: "rolled back", reason, plan };

test("an approved plan is rolled out and checked", async () => {
  for (const [decision, reason] of [
    ["healthy", undefined],
    ["broken", "people say that it is broken"],
  ]) {
    const { result, waits } = await rollOut({}, approved(plan), answered({ decision }));
    assert.deepEqual(result, ended(reason));
    assert.deepEqual(
      waits.map(({ kind }) => kind),
      ["ask", "approve", "sleep", "ask"],
    );
    assert.deepEqual(waits[2], { kind: "sleep", ms: 5000 });
  }
});

test("a tool that requires approval deploys the plan", async () => {
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
  const ends: [End, string | undefined][] = [
    [received({ healthy: true, detail: "all checks pass" }), undefined],
    [received({ healthy: false }), "it is reported as broken"],
    [received({ healthy: false, detail: "no answer" }), "no answer"],
    [expired(), "nothing is reported in time"],
  ];
  for (const [end, reason] of ends) {
    const { result, waits } = await rollOut({ signal: "health" }, approved(plan), end);
    assert.deepEqual(result, ended(reason));
    const [, , wait, ...later] = waits;
    assert.ok(wait?.kind === "awaitExternal");
    const { name, metadata } = wait.question;
    assert.deepEqual([name, metadata], ["health", { version: "1.4.2", environment: "live" }]);
    assert.deepEqual(later, reason === undefined ? [{ kind: "sleep", ms: 5000 }] : []);
  }
});

test("a deployed version is verified after it has settled", async () => {
  const unclear = "the service does not say that it is healthy";
  const answers: [Health, string | undefined][] = [
    [{ json: { version: "1.4.2", healthy: true } }, undefined],
    [{ json: { healthy: false } }, unclear],
    [{ json: null }, unclear],
    [{ status: 503, json: { healthy: true } }, "the server answered with status 503"],
    [undefined, "it is away"],
  ];
  const healthy = received({ healthy: true });
  for (const [health, reason] of answers) {
    const others = { signal: "health", deploy: true, health };
    const { result, waits, sent } = await rollOut(others, approved(plan), carriedOut, healthy);
    assert.deepEqual(result, ended(reason));
    assert.deepEqual(
      waits.slice(2).map(({ kind }) => kind),
      ["callTools", "awaitExternal", "sleep"],
    );
    assert.deepEqual(sent.slice(1), [["https://deploy.example/api/deployments/1.4.2", undefined]]);
  }
});

test("a version that is reported as broken is not verified", async () => {
  const others = { signal: "health", deploy: true, health: { json: { healthy: true } } };
  const broken = received({ healthy: false, detail: "no answer" });
  const { result, waits, sent } = await rollOut(others, approved(plan), carriedOut, broken);
  assert.deepEqual(result, ended("no answer"));
  assert.deepEqual(
    waits.slice(2).map(({ kind }) => kind),
    ["callTools", "awaitExternal"],
  );
  assert.deepEqual(
    sent.map(([url]) => url),
    ["https://deploy.example/api/builds"],
  );
});

test("a denied plan is a result", async () => {
  const { result } = await rollOut({}, denied("not on a Friday"));
  assert.deepEqual(result, { state: "rejected", comment: "not on a Friday" });
});

test("a plan that nobody decides about fails the call", async () => {
  const { failure, message } = await rollOut({}, expired());
  assert.deepEqual([failure, message], ["failed", "nobody answered in time"]);
});
