// Tests of a plugin under Node.js, without a host and without WebAssembly.

import { dispatch, logLines } from "./dispatch.js";
import { NOT_DURABLE } from "./durable.js";
import { misfits } from "./native/json-schema.js";
import { worlds } from "./native/world.js";
import { DeclaredPlugin } from "./plugin.js";
import { format } from "./text.js";

/** @typedef {import("./testing.d.ts").Outcome} Outcome */

/** The methods of `console`, with the log level of each. */
const LEVELS = /** @type {const} */ ({
  debug: "debug",
  log: "info",
  info: "info",
  warn: "warn",
  error: "error",
});

// During a call, the console also writes to the call's log.
for (const [method, level] of Object.entries(LEVELS)) {
  const name = /** @type {keyof typeof LEVELS} */ (method);
  const write = console[name].bind(console);
  console[name] = (...values) => {
    const call = worlds.getStore();
    if (call) logLines(call, level, format(values));
    write(...values);
  };
}

/** @type {typeof import("./testing.d.ts").run} */
export async function run(plugin, tool, args = {}, attempt = {}) {
  const declared = known(plugin);
  if (!declared.servers.has(tool))
    throw new Error(`the plugin runs no tool "${tool}"; it runs ${[...declared.servers.keys()].join(", ")}`);
  const { id = "call-1", stopRequested = false, keyvalue = new Map(), config = {} } = attempt;
  /** @type {import("./testing.d.ts").Update[]} */
  const progress = [];
  /** @type {{ level: import("./index.d.ts").Level, message: string }[]} */
  const log = [];
  const durable = declared.servers.get(tool)?.durable === true;
  const { waits, wait, sleep } = scripted(attempt.waits ?? [], durable);
  const reported = { progress, log, waits };
  /** @type {import("./dispatch.js").Host} */
  const host = {
    progress: ({ message, fraction, data }) =>
      progress.push({ message, fraction, data: data && JSON.parse(data) }),
    log: (level, message) => log.push({ level, message }),
    stopRequested: () => (typeof stopRequested === "function" ? stopRequested() : stopRequested),
    wait,
    sleep,
    waits: true,
  };
  const request = {
    id,
    tool,
    arguments: JSON.stringify(args),
    idempotencyKey: attempt.idempotencyKey ?? `key-of-${id}`,
    attempt: attempt.attempt ?? 1,
    scope: JSON.stringify({
      conversation: "conversation-1",
      turn: "turn-1",
      caller: "test",
      ...attempt.scope,
    }),
  };
  const said = declared.declarations.find(({ name }) => name === tool);
  const { parameters = "{}", options = "{}" } = said ?? {};
  /** @type {(what: string, failure: "invalid-arguments" | "failed", wrong: string[]) => Outcome | undefined} */
  const refused = (what, failure, wrong) =>
    wrong.length > 0
      ? {
          ok: false,
          failure,
          message: `${what} not fit the tool's schema: ${wrong.join("; ")}`,
          ...reported,
        }
      : undefined;
  const surroundings = { keyvalue, config, http: attempt.http ?? nobody, log: host.log };
  return worlds.run(surroundings, async () => {
    try {
      const unfit = misfits(JSON.parse(parameters), JSON.parse(request.arguments));
      const never = refused("the arguments do", "invalid-arguments", unfit);
      if (never) return never;
      const result = JSON.parse(await dispatch(declared, request, host));
      const broken = misfits(JSON.parse(options).result ?? true, result);
      return refused("the result does", "failed", broken) ?? { ok: true, result, ...reported };
    } catch (failure) {
      const { tag, val } = /** @type {{ tag?: "failed", val: string }} */ (failure);
      if (!tag) throw failure;
      return { ok: false, failure: tag, message: val, ...reported };
    }
  });
}

/** The end of one wait: the kind of wait that it can end, if only one, and what the host returns or throws. */
class ScriptedEnd {
  /**
   * @param {import("./durable.js").Kind | undefined} kind
   * @param {(question: Record<string, unknown>) => unknown} end
   */
  constructor(kind, end) {
    this.kind = kind;
    this.end = end;
  }
}

/** @type {(end: ScriptedEnd) => import("./testing.d.ts").End} */
const opaque = (end) => /** @type {any} */ (end);

/** @type {typeof import("./testing.d.ts").answered} */
export const answered = (answer) => opaque(new ScriptedEnd("ask", () => answer));

/** @type {typeof import("./testing.d.ts").approved} */
export const approved = (value) =>
  opaque(new ScriptedEnd("approve", ({ subject }) => (value === undefined ? subject : value)));

/** @type {typeof import("./testing.d.ts").received} */
export const received = (result) => opaque(new ScriptedEnd("awaitExternal", () => result));

/** @type {typeof import("./testing.d.ts").returned} */
export const returned = (...results) => opaque(new ScriptedEnd("callTools", () => results));

/** @type {typeof import("./testing.d.ts").denied} */
export const denied = (comment) =>
  opaque(new ScriptedEnd(undefined, () => thrown({ tag: "denied", val: comment })));

/** @type {typeof import("./testing.d.ts").expired} */
export const expired = () => opaque(new ScriptedEnd(undefined, () => thrown({ tag: "expired" })));

/**
 * The part of a test's host that waits.
 * @param {readonly import("./testing.d.ts").End[]} script
 * @param {boolean} durable
 */
function scripted(script, durable) {
  const ends = /** @type {ScriptedEnd[]} */ ([.../** @type {readonly unknown[]} */ (script)]);
  /** @type {import("./testing.d.ts").Wait[]} */
  const waits = [];
  const waited = (/** @type {import("./testing.d.ts").Wait} */ wait) => {
    waits.push(wait);
    if (!durable) thrown({ tag: "not-granted", val: NOT_DURABLE });
  };
  return {
    waits,
    wait: (/** @type {import("./durable.js").Kind} */ kind, /** @type {string} */ text) => {
      const question = JSON.parse(text);
      waited({ kind, question });
      const next = ends.shift();
      if (!next || (next.kind ?? kind) !== kind)
        return thrown({ tag: "not-granted", val: `the test does not answer this question: ${text}` });
      return JSON.stringify(next.end(question));
    },
    sleep: (/** @type {number} */ ms) => waited({ kind: "sleep", ms }),
  };
}

/**
 * @param {{ tag: string, val?: string | undefined }} error
 * @returns {never}
 */
function thrown(error) {
  throw error;
}

/** @type {typeof import("./testing.d.ts").declarations} */
export function declarations(plugin) {
  return known(plugin).declarations.map((one) => ({
    ...one,
    parameters: JSON.parse(one.parameters),
    options: JSON.parse(one.options),
  }));
}

/** @param {unknown} plugin */
function known(plugin) {
  if (plugin instanceof DeclaredPlugin) return plugin;
  throw new TypeError(
    "the first argument must be the result of plugin([…]): the default export of the plugin's main module",
  );
}

/**
 * @param {import("./http.d.ts").Sent} request
 * @returns {never}
 */
function nobody({ method, url }) {
  throw { refused: "unreachable", why: `the test has no answer to ${method} ${url}` };
}
