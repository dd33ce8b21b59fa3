// Reads a key as often as its arguments say, and then asks a person.

import { plugin, tool } from "@toolgate/sdk";
import { open } from "@toolgate/sdk/keyvalue";
import * as z from "zod";

const work = tool({
  name: "work",
  description: "Works, and then asks.",
  parameters: z.object({ reads: z.int() }),
  durable: true,
  run({ reads }, call) {
    const bucket = open();
    for (let n = 0; n < reads; n += 1) bucket.get("n");
    return call.ask({ prompt: "Go on?", response: z.boolean() });
  },
});

export default plugin([work]);
