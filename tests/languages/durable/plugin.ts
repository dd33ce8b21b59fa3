// A durable tool that counts, draws a random number, sends a request, asks and sleeps in each round. A kill of the host changes
// none of its results.

import { plugin, tool } from "@toolgate/sdk";
import { request } from "@toolgate/sdk/http";
import { open } from "@toolgate/sdk/keyvalue";
import * as z from "zod";

const given = z.strictObject({ word: z.string() });

const work = tool({
  name: "work_ts",
  description: "Counts, draws, sends, asks and sleeps in each round.",
  parameters: z.strictObject({ key: z.string(), rounds: z.int(), url: z.string() }),
  durable: true,
  run({ key, rounds, url }, call) {
    const results: { count: number; sent: string; given: string }[] = [];
    for (let number = 0; number < rounds; number += 1) {
      const count = open().increment(key);
      const body = `${key} ${number} ${count} ${Math.random()}`;
      const answer = request(url, { method: "POST", body });
      const { word } = call.ask({ prompt: `${key} ${number}`, response: given });
      call.sleep(1_000);
      results.push({ count, sent: answer.text(), given: word });
    }
    return results;
  },
});

export default plugin([work]);
