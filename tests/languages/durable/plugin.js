// A durable tool that counts, draws a random number, asks and sleeps in each round. A kill of the host changes none of its
// results. QuickJS cannot send requests.

import { plugin, tool } from "@toolgate/sdk";
import { open } from "@toolgate/sdk/keyvalue";

const given = {
  type: "object",
  properties: { word: { type: "string" } },
  required: ["word"],
  additionalProperties: false,
};

const work = tool({
  name: "work_js",
  description: "Counts, draws, asks and sleeps in each round.",
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
      open().set("drawn", Math.random());
      const { word } = call.ask({ prompt: `${key} ${number}`, response: given });
      call.sleep(1_000);
      results.push({ count, sent: null, given: word });
    }
    return results;
  },
});

export default plugin([work]);
