// Host capabilities in one plugin. Its tools: one that works in steps until it is asked to stop, one that counts such calls, one
// that uses every capability and random numbers, and the tool of the template with a result that is greater by one.

import { jsonSchema, plugin, tool } from "@toolgate/sdk";
import { all, get, required } from "@toolgate/sdk/config";
import { request } from "@toolgate/sdk/http";
import { open } from "@toolgate/sdk/keyvalue";
import * as z from "zod";

const work = tool({
  name: "work",
  description: "Takes steps until it is asked to stop, and gives the number of those that it took.",
  parameters: z.strictObject({ steps: z.int().min(1).describe("Steps to take.") }),
  result: z.int(),
  streaming: true,
  run({ steps }, call) {
    for (let step = 0; step < steps; step += 1) {
      if (call.stopRequested()) {
        open().increment("stopped");
        return step;
      }
      call.progress("a step", step / steps);
      for (let n = 0, sum = 0; n < 100_000; n += 1) sum = (sum + n) | 0;
    }
    return steps;
  },
});

const stopped = tool({
  name: "stopped",
  description: "Gives the number of calls that were asked to stop and did.",
  result: z.int(),
  hints: { readOnly: true },
  run: () => open().increment("stopped", 0),
});

const reach = tool({
  name: "reach",
  description: "Reaches for everything, and says what came of it.",
  parameters: z.strictObject({ url: z.string() }),
  run({ url }) {
    const bucket = open();
    bucket.set("gone", { a: "ü" });
    bucket.set("kept", [1, "ü"]);
    bucket.delete("gone");
    const count = bucket.update<number>("count", (count = 0) => count + 1);
    const answer = request(url, { method: "POST", headers: { "x-own": "mine" }, body: "ping ü" });
    return {
      draws: [Math.random(), Math.random()],
      configured: [get("greeting"), get("nothing"), required("greeting")],
      all: Object.keys(all()).sort(),
      stored: [
        bucket.get("kept"),
        bucket.get("gone") ?? null,
        bucket.has("kept"),
        bucket.increment("sum", 2),
      ],
      keys: bucket.keys(),
      count,
      answer: [answer.status, answer.header("X-Answer"), answer.text()],
    };
  },
});

const count = tool({
  name: "hello_count",
  description: "Counts the words of a text, and one more.",
  parameters: z.strictObject({
    text: z.string().meta({ format: "email", description: "The text to count." }),
  }),
  result: z.int(),
  run: ({ text }) => text.split(/\s+/).filter((word) => word !== "").length + 1,
});

/** Tools whose schemas differ only in their draft. */
const drafts = Object.entries({
  draft_07: "http://json-schema.org/draft-07/schema#",
  draft_2019_09: "https://json-schema.org/draft/2019-09/schema",
  draft_2020_12: "https://json-schema.org/draft/2020-12/schema",
}).map(([name, $schema]) =>
  tool({
    name,
    description: "Accepts what its draft accepts.",
    parameters: jsonSchema<object>({
      $schema,
      type: "object",
      properties: {
        count: { $ref: "#/definitions/count", maximum: 3 },
        pair: { type: "array", prefixItems: [{ type: "string" }] },
      },
      definitions: { count: { type: "integer" } },
    }),
    run: () => true,
  }),
);

export default plugin([work, stopped, reach, count, ...drafts]);
