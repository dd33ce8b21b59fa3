// A durable tool. In each round it counts, stores a random number and the time, waits and sleeps. Each kind of wait has its turn. A
// kill of the host changes none of its results. QuickJS cannot send requests.

import { Failed, plugin, tool } from "@toolgate/sdk";
import { open } from "@toolgate/sdk/keyvalue";

const given = {
  type: "object",
  properties: { word: { type: "string" } },
  required: ["word"],
  additionalProperties: false,
};

function wait(key, number, call) {
  const prompt = `${key} ${number}`;
  switch (number % 4) {
    case 0:
      return call.ask({ prompt, response: given }).word;
    case 1:
      return call.approve({ prompt, subject: { word: `go on with ${prompt}` } }).word;
    case 2:
      return call.awaitExternal({ prompt, schema: given }).word;
  }
  const nested = { key: `${key}+`, rounds: 1, url: "" };
  const [end] = call.callTools([{ tool: "work_js", arguments: nested }]);
  if (!end.ok) throw new Failed(end.error.message);
  return end.result;
}

const work = tool({
  name: "work_js",
  description: "Counts, draws, waits and sleeps in each round.",
  parameters: {
    type: "object",
    properties: { key: { type: "string" }, rounds: { type: "integer" }, url: { type: "string" } },
    required: ["key", "rounds", "url"],
    additionalProperties: false,
  },
  durable: true,
  run({ key, rounds }, call) {
    const results = [];
    for (let number = 0; number < rounds; number += 1) {
      const count = open().increment(key);
      open().set("drawn", `${Math.random()} ${Date.now()}`);
      const given = wait(key, number, call);
      call.sleep(1_000);
      results.push({ count, sent: null, given });
    }
    return results;
  },
});

export default plugin([work]);
