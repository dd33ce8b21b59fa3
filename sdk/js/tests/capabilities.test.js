// The capabilities of a call, natively: the store, the network, the configuration.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, get, required } from "../src/config.js";
import { request } from "../src/http.js";
import { plugin, tool } from "../src/index.js";
import { open } from "../src/keyvalue.js";
import { run } from "../src/testing.js";

/** The outcome of a call of a tool with this body. */
const outcome = (
  /** @type {() => unknown} */ body,
  /** @type {import("../src/testing.d.ts").Attempt} */ attempt = {},
) => run(plugin([tool({ name: "t", description: "Does it.", run: body })]), "t", {}, attempt);

test("values outlast the call, as JSON", async () => {
  const keyvalue = new Map();
  await outcome(() => open().set("é", { n: [1, "😀"] }), { keyvalue });
  const read = () => [
    open().get("é"),
    open().get("no") ?? "none",
    open().has("é"),
    open().keys("é"),
    open().keys("x"),
  ];
  assert.deepEqual((await outcome(read, { keyvalue })).result, [{ n: [1, "😀"] }, "none", true, ["é"], []]);
  await outcome(() => open().delete("é"), { keyvalue });
  assert.equal(keyvalue.size, 0);
});

test("bytes are kept as they are, and are no values", async () => {
  const body = () => {
    open().setBytes("raw", new Uint8Array([0, 255]));
    return [...(open().getBytes("raw") ?? [])];
  };
  assert.deepEqual((await outcome(body)).result, [0, 255]);
  const { failure, message } = await outcome(() => open().get("raw"), {
    keyvalue: new Map([["raw", new Uint8Array([255])]]),
  });
  assert.deepEqual([failure, message], ["failed", 'the value of "raw" is not JSON']);
});

test("an update starts again with what others wrote", async () => {
  const body = () => {
    const bucket = open();
    let tries = 0;
    const step = (/** @type {number | undefined} */ value = 0) => {
      tries += 1;
      if (tries < 3) bucket.set("n", value + 10);
      return value + 1;
    };
    return [bucket.update("n", step), tries, bucket.update("n", () => undefined), bucket.increment("n", -2)];
  };
  assert.deepEqual((await outcome(body)).result, [21, 3, 21, 19]);
});

test("an update that never wins gives up", async () => {
  let value = 0;
  const body = () =>
    open().update("n", () => {
      open().set("n", ++value);
      return -1;
    });
  const { failure, message } = await outcome(body);
  assert.deepEqual([failure, message], ["unavailable", '"n" is being changed by too many calls at once']);
});

test("what the store refuses is a failure", async () => {
  const refused = async (/** @type {() => unknown} */ body) => {
    const { failure, message, log } = await outcome(body);
    assert.deepEqual(log, []);
    return [failure, message];
  };
  assert.deepEqual(await refused(() => open("other")), ["failed", "the host has no such key-value bucket"]);
  assert.deepEqual(await refused(() => open().set("f", () => 1)), [
    "failed",
    'a function for "f" has no JSON form',
  ]);
  const text = () => {
    open().set("n", "x");
    open().increment("n");
  };
  assert.deepEqual(await refused(text), [
    "unavailable",
    'the key-value store cannot be used now: what is under "n" is not a number',
  ]);
});

test("a request is sent as it is said", async () => {
  /** @type {import("../src/http.d.ts").Sent[]} */
  const sent = [];
  const body = () => {
    request("https://h/a?b", { headers: { "X-A": "1" } });
    const answer = request("https://h/", { method: "PUT", json: { é: 1 }, headers: [["Accept", "x"]] });
    return [answer.status, answer.ok, answer.header("Content-TYPE"), answer.json(), answer.text()];
  };
  const http = (/** @type {import("../src/http.d.ts").Sent} */ one) => {
    sent.push(one);
    return { status: 201, headers: { "Content-Type": "application/json" }, json: [1] };
  };
  assert.deepEqual((await outcome(body, { http })).result, [201, true, "application/json", [1], "[1]"]);
  assert.deepEqual(sent[0], {
    method: "GET",
    url: "https://h/a?b",
    headers: [["x-a", "1"]],
    body: undefined,
  });
  assert.deepEqual(
    [sent[1]?.method, sent[1]?.headers, new TextDecoder().decode(sent[1]?.body)],
    [
      "PUT",
      [
        ["accept", "x"],
        ["content-type", "application/json"],
      ],
      '{"é":1}',
    ],
  );
});

test("a status says whether trying again may help", async () => {
  for (const [status, expected] of /** @type {const} */ ([
    [204, undefined],
    [301, "failed"],
    [404, "failed"],
    [429, "unavailable"],
    [503, "unavailable"],
  ])) {
    const { failure } = await outcome(() => void request("https://h/").successful(), {
      http: () => ({ status }),
    });
    assert.equal(failure, expected, String(status));
  }
  assert.equal(
    (await outcome(() => request("https://h/").json(), { http: () => ({ body: "<" }) })).message,
    "the server's answer is not JSON",
  );
  const { failure, message } = await outcome(() => request("https://h/"));
  assert.deepEqual(
    [failure, message],
    ["unavailable", "the request got no response: the test has no answer to GET https://h/"],
  );
});

test("the configuration is the operator's", async () => {
  const config = { region: "eu" };
  const body = () => [get("region"), get("toString") ?? "none", all(), required("token")];
  assert.equal(
    (await outcome(body, { config })).message,
    'the operator has not configured "token" for this plugin',
  );
  assert.deepEqual((await outcome(body, { config: { ...config, token: "t" } })).result, [
    "eu",
    "none",
    { region: "eu", token: "t" },
    "t",
  ]);
});

test("outside of a call there is nothing to use", () => {
  assert.throws(() => open(), /within run\(\) of @toolgate\/sdk\/testing/);
});
