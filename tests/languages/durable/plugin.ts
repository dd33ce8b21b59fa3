// A durable tool. In each round it counts, draws a random number, reads the clock, sends two requests, waits and sleeps. Each kind
// of wait has its turn. A kill of the host changes none of its results.

import { type Call, Failed, plugin, tool } from "@toolgate/sdk";
import { request } from "@toolgate/sdk/http";
import { open } from "@toolgate/sdk/keyvalue";
import * as z from "zod";

const given = z.strictObject({ word: z.string() });

function wait(key: string, number: number, url: string, call: Call): unknown {
  const prompt = `${key} ${number}`;
  switch (number % 4) {
    case 0:
      return call.ask({ prompt, response: given }).word;
    case 1:
      return call.approve({ prompt, subject: { word: `go on with ${prompt}` } }).word;
    case 2:
      return call.awaitExternal({ prompt, schema: given }).word;
  }
  const nested = { key: `${key}+`, rounds: 1, url };
  const [end] = call.callTools([{ tool: "work_ts", arguments: nested }]);
  if (!end.ok) throw new Failed(end.error.message);
  return end.result;
}

const work = tool({
  name: "work_ts",
  description: "Counts, draws, sends, waits and sleeps in each round.",
  parameters: z.strictObject({ key: z.string(), rounds: z.int(), url: z.string() }),
  durable: true,
  run({ key, rounds, url }, call) {
    const results: { count: number; sent: string; given: unknown }[] = [];
    for (let number = 0; number < rounds; number += 1) {
      const count = open().increment(key);
      const read = request(url).text();
      const body = `${key} ${number} ${count} ${Math.random()} ${Date.now()} ${read}`;
      const answer = request(url, { method: "POST", body });
      const given = wait(key, number, url, call);
      call.sleep(1_000);
      results.push({ count, sent: answer.text(), given });
    }
    return results;
  },
});

export default plugin([work]);
