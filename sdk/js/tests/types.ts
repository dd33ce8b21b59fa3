// The compiler's checks of a plugin. `npm run typecheck` compiles this file, and nothing runs it. If a wrong line
// compiles, its `@ts-expect-error` is unused, which is an error.

import * as z from "zod";
import {
  type Call,
  client,
  human,
  type Json,
  jsonSchema,
  plugin,
  provider,
  type Tool,
  tool,
} from "../src/index.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles for values of exactly this type. */
const is =
  <Expected>() =>
  <Actual>(_: Actual, ..._same: Same<Expected, Actual> extends true ? [] : [never]) => {};

const base = { name: "t", description: "Does it." };
const payment = z.object({ to: z.string(), cents: z.int().default(100), at: z.array(z.string()).optional() });

export const tools: Tool[] = [
  tool({
    ...base,
    parameters: payment,
    result: z.object({ paid: z.int() }),
    run(args, call) {
      is<{ to: string; cents: number; at?: string[] | undefined }>()(args);
      is<boolean>()(call.stopRequested());
      return { paid: args.cents };
    },
  }),
  tool({ ...base, parameters: payment, result: z.int(), run: async ({ cents }) => cents }),
  tool({
    ...base,
    parameters: jsonSchema<{ a: 1 }>({ type: "object" }),
    run: (args) => is<{ a: 1 }>()(args),
  }),
  tool({ ...base, run: (args) => args.anything ?? null }),
  tool({
    ...base,
    parameters: payment,
    approval: "requires-approval",
    editable: ["cents"],
    prompt: "{to}?",
    run: () => 1,
  }),
  tool({
    ...base,
    durable: true,
    expiresMs: 5,
    run(_, call) {
      is<{ to: string }>()(call.ask({ prompt: "?", response: z.object({ to: z.string() }) }));
      is<Json>()(call.ask({ prompt: "?" }));
      is<{ ok: boolean }>()(call.awaitExternal({ prompt: "?", schema: z.object({ ok: z.boolean() }) }));
      is<Json>()(call.awaitExternal({ prompt: "?", signal: "health", metadata: { n: 1 } }));
      const [posted] = call.callTools([{ tool: "post", arguments: { n: 1 } }]);
      if (!posted.ok) return posted.error.code;
      is<Json>()(posted.result);
      is<"yes" | "no">()(call.choose({ prompt: "?", choices: ["yes", "no"] }).decision);
      is<{ n: number }>()(call.approve({ prompt: "?", subject: { n: 1 }, editable: ["n"], quorum: 2 }));
      return null;
    },
  }),
  tool({ ...base, durable: true, approval: "requires-approval", prompt: "?", run: () => 1 }),
  human({ ...base, parameters: payment, response: z.boolean(), onExpiry: { answer: false }, expiresMs: 5 }),
  client({
    ...base,
    parameters: payment,
    result: z.boolean(),
    approval: "requires-approval",
    onExpiry: "deny",
  }),
  client({ ...base, expiresMs: 5 }),
  provider({ ...base, retention: { neverEvict: true } }),
];

// @ts-expect-error a result of another type than declared
tool({ ...base, result: z.int(), run: () => "one" });
// @ts-expect-error an argument that does not exist
tool({ ...base, parameters: payment, run: ({ dollars }) => dollars });
// @ts-expect-error a prompt that nobody sees
tool({ ...base, prompt: "?", run: () => 1 });
// @ts-expect-error an expiry without a wait
tool({ ...base, expiresMs: 5, run: () => 1 });
// @ts-expect-error an editable argument that does not exist
tool({ ...base, parameters: payment, approval: "requires-approval", editable: ["dollars"], run: () => 1 });
// @ts-expect-error a prompt of a durable tool, which asks its own questions
tool({ ...base, durable: true, prompt: "?", run: () => 1 });
// @ts-expect-error a member that the value lacks
export const edited = (call: Call) => call.approve({ prompt: "?", subject: { n: 1 }, editable: ["m"] });
// @ts-expect-error a question without a prompt
export const silent = (call: Call) => call.ask({ response: z.int() });
// @ts-expect-error people who answer for an external system
export const answering = (call: Call) => call.awaitExternal({ prompt: "?", who: ["group:ops"] });
// @ts-expect-error a result that there may not be
export const hoping = (call: Call) => call.callTools([{ tool: "post", arguments: {} }])[0].result;
// @ts-expect-error a call without arguments
export const bare = (call: Call) => call.callTools([{ tool: "post" }]);
// @ts-expect-error no function to run
tool({ ...base });
// @ts-expect-error a gated question
human({ ...base, approval: "requires-approval" });
// @ts-expect-error a gated provider
provider({ ...base, approval: "requires-approval" });
// @ts-expect-error a timeout for a tool that the host does not run
client({ ...base, timeoutMs: 5 });
// @ts-expect-error no tool
plugin([{ name: "t" }]);
