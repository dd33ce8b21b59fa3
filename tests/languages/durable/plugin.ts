// A durable tool. In each round it counts, draws a random number, reads the clock, sends two requests, then three at once and one in
// a race with a timer, waits and sleeps. Each kind of wait has its turn. A kill of the host changes none of its results.

/// <reference lib="dom" />

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

async function post(url: string, body: string): Promise<string> {
  const answer = await fetch(url, { method: "POST", body });
  return answer.text();
}

/** The answers to three requests, in the order in which they came. */
async function together(url: string, begin: string): Promise<string[]> {
  const answers: string[] = [];
  const each = async (name: string) => {
    answers.push(await post(url, `${begin} ${name}`));
  };
  await Promise.all(["a", "b", "c"].map(each));
  return answers;
}

async function raced(url: string, body: string): Promise<string> {
  let timer: number | undefined;
  const late = new Promise<string>((ended) => {
    timer = setTimeout(() => ended("late"), 3_600_000);
  });
  const first = await Promise.race([late, post(url, body)]);
  clearTimeout(timer);
  return first;
}

const work = tool({
  name: "work_ts",
  description: "Counts, draws, sends, waits and sleeps in each round.",
  parameters: z.strictObject({ key: z.string(), rounds: z.int(), url: z.string() }),
  durable: true,
  async run({ key, rounds, url }, call) {
    const results: { count: number; sent: string; together: string[]; raced: string; given: unknown }[] = [];
    for (let number = 0; number < rounds; number += 1) {
      const count = open().increment(key);
      const read = request(url).text();
      const body = `${key} ${number} ${count} ${Math.random()} ${Date.now()} ${read}`;
      const answer = request(url, { method: "POST", body });
      const answers = await together(url, `${key} ${number} together`);
      const first = await raced(url, `${key} ${number} raced after ${answers}`);
      const given = wait(key, number, url, call);
      call.sleep(1_000);
      results.push({ count, sent: answer.text(), together: answers, raced: first, given });
    }
    return results;
  },
});

export default plugin([work]);
