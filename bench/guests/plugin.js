// Reads a key as often as its arguments say, and then asks a person.

import { plugin, tool } from "@toolgate/sdk";
import { open } from "@toolgate/sdk/keyvalue";

const work = tool({
  name: "work",
  description: "Works, and then asks.",
  parameters: { type: "object", properties: { reads: { type: "integer" } }, required: ["reads"] },
  durable: true,
  run({ reads }, call) {
    const bucket = open();
    for (let n = 0; n < reads; n += 1) bucket.get("n");
    return call.ask({ prompt: "Go on?", response: { type: "boolean" } });
  },
});

export default plugin([work]);
