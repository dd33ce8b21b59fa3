// The options of a tool: the kinds of tools that have them, their keys in the interface, and their possible values.

import { documentOf } from "./schema.js";

/**
 * @typedef {import("./tool.js").Executor} Executor
 * @typedef {Record<string, unknown>} Definition
 *
 * @typedef {object} Option
 * @property {string} key The key in the interface's `options`.
 * @property {readonly Executor[]} kinds The kinds of tools that have it.
 * @property {boolean} [gated] Whether server and client tools have it only if they require approval.
 * @property {boolean} [waits] Whether client and durable tools, which can wait, also have it without an approval.
 * @property {(value: unknown, definition: Definition) => unknown} read Its JSON, or an error with the allowed values.
 */

/** @type {readonly Executor[]} */
const ALL = ["server", "client", "human", "provider"];

/** @type {readonly Executor[]} */
const ASKED = ["server", "client", "human"];

/** @type {Readonly<Record<string, Option>>} */
export const OPTIONS = {
  title: { key: "title", kinds: ALL, read: text(128) },
  result: { key: "result", kinds: ["server", "client", "provider"], read: schema },
  timeoutMs: { key: "timeout_ms", kinds: ["server"], read: integer(86_400_000) },
  expiresMs: {
    key: "expires_ms",
    kinds: ASKED,
    gated: true,
    waits: true,
    read: integer(31_536_000_000),
  },
  onExpiry: { key: "on_expiry", kinds: ASKED, gated: true, read: (value) => value },
  prompt: { key: "prompt", kinds: ASKED, gated: true, read: text(4096) },
  responses: { key: "responses", kinds: ["human"], read: texts(16, 64) },
  response: { key: "response", kinds: ["human"], read: schema },
  editable: { key: "editable", kinds: ["server", "client"], gated: true, read: editable },
  risk: { key: "risk", kinds: ALL, read: oneOf("low", "medium", "high", "critical") },
  contextKeys: { key: "context_keys", kinds: ASKED, gated: true, waits: true, read: texts(64, 128) },
  durable: { key: "durable", kinds: ["server"], read: boolean },
  recovery: { key: "recovery", kinds: ["server"], read: oneOf("retry", "ask", "fail") },
  retention: {
    key: "retention",
    kinds: ALL,
    read: members({
      neverEvict: "never_evict",
      maxAgeTurns: "max_age_turns",
      maxCount: "max_count",
      maxAgeDays: "max_age_days",
    }),
  },
  hints: {
    key: "hints",
    kinds: ALL,
    read: members({
      readOnly: "read_only",
      destructive: "destructive",
      idempotent: "idempotent",
      openWorld: "open_world",
    }),
  },
};

/**
 * Why a tool of this kind does not have this option. `undefined` if it has it.
 * @param {Option} option
 * @param {Executor} executor
 * @param {boolean} gated
 * @param {boolean} durable
 */
export function misplaced(option, executor, gated, durable) {
  if (!option.kinds.includes(executor)) return `a ${executor} tool has no such option`;
  const waits = executor === "client" || durable;
  if (!option.gated || gated || executor === "human" || (waits && option.waits)) return undefined;
  return 'nobody is asked about a call of it: say approval: "requires-approval", or leave the option out';
}

/** @param {unknown} value */
function schema(value) {
  if (typeof value !== "object" || value === null) throw new Error("is a schema");
  return documentOf(/** @type {import("./schema.js").Describes} */ (value));
}

/** @param {unknown} value */
function boolean(value) {
  if (typeof value === "boolean") return value;
  throw new Error("is true or false");
}

/** @param {number} most */
function text(most) {
  return (/** @type {unknown} */ value) => {
    if (typeof value === "string" && value.length > 0 && value.length <= most) return value;
    throw new Error(`is a string of 1 to ${most} characters`);
  };
}

/** @param {number} most */
function integer(most) {
  return (/** @type {unknown} */ value) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most) return value;
    throw new Error(`is an integer from 1 to ${most}`);
  };
}

/** @param {readonly string[]} values */
function oneOf(...values) {
  return (/** @type {unknown} */ value) => {
    if (values.some((known) => known === value)) return value;
    throw new Error(`is one of ${values.map((known) => `"${known}"`).join(", ")}`);
  };
}

/**
 * @param {number} most
 * @param {number} longest
 */
function texts(most, longest) {
  const one = text(longest);
  return (/** @type {unknown} */ value) => {
    if (!Array.isArray(value) || value.length > most || new Set(value).size !== value.length) {
      throw new Error(`is a list of at most ${most} different strings`);
    }
    return value.map(one);
  };
}

/**
 * @param {unknown} value
 * @param {Definition} definition
 */
function editable(value, definition) {
  if (value === "none" || value === "all") return value;
  const names = texts(64, 128)(value);
  const known = propertiesOf(definition);
  const unknown = names.filter((name) => !known.includes(name));
  if (names.length === 0 || unknown.length > 0) {
    throw new Error(
      `is "none", "all", or names of parameters (${known.join(", ")})${unknown.length ? `, not ${unknown.join(", ")}` : ""}`,
    );
  }
  return names;
}

/** @param {Readonly<Record<string, string>>} names */
function members(names) {
  return (/** @type {unknown} */ value) => {
    if (typeof value !== "object" || value === null)
      throw new Error(`is an object of ${Object.keys(names).join(", ")}`);
    const entries = Object.entries(value).filter(([, member]) => member !== undefined);
    for (const [name] of entries) {
      if (!Object.hasOwn(names, name))
        throw new Error(`has no ${name}; it has ${Object.keys(names).join(", ")}`);
    }
    return Object.fromEntries(entries.map(([name, member]) => [names[name], member]));
  };
}

/**
 * The names of a tool's parameters.
 * @param {Definition} definition
 */
function propertiesOf(definition) {
  const document = documentOf(/** @type {import("./schema.js").Describes} */ (definition.parameters ?? {}));
  return Object.keys(document.properties ?? {});
}
