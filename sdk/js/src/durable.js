// Waits in the middle of a call: the questions and answers of the interface `durable`.

import { Failed } from "./failure.js";
import { json } from "./json.js";
import { documentOf, explain, schemaOf } from "./schema.js";

export const NOT_DURABLE =
  "only a durable tool can wait in the middle of a call: declare it with durable: true";

/** @typedef {Readonly<Record<string, any>>} Asked A question, as authors write it. */

/** The function of the interface that waits. @typedef {"ask" | "approve" | "awaitExternal" | "callTools"} Kind */

/** The members of a question that the interface calls by another name. @type {Readonly<Record<string, string>>} */
const KEYS = { expiresMs: "expires_ms", choices: "responses", signal: "name" };

const PERSON = ["prompt", "expiresMs", "risk", "who"];

/** The members of each question, as authors write them. */
export const MEMBERS = {
  ask: [...PERSON, "response"],
  choose: [...PERSON, "choices"],
  approve: [...PERSON, "subject", "editable", "quorum"],
  awaitExternal: ["prompt", "expiresMs", "schema", "signal", "metadata"],
};

/** The members that describe an answer. */
const DESCRIBES = ["response", "schema"];

/** The messages without an answer. */
const REASONS = {
  denied: "a person denied it",
  expired: "nobody answered in time",
  cancelled: "the call is being cancelled",
};

export class WaitError extends Failed {
  /**
   * @param {import("./index.d.ts").WaitError["reason"]} reason
   * @param {string} message
   * @param {string} [comment]
   */
  constructor(reason, message, comment) {
    super(message);
    this.reason = reason;
    this.comment = comment;
  }
}

/**
 * The JSON text of a question that can have these members.
 * @param {Asked} question
 * @param {readonly string[]} known
 */
export function textOf(question, known) {
  const given = Object.entries(question).filter(([, value]) => value !== undefined);
  const unknown = given.find(([name]) => !known.includes(name));
  if (unknown) throw new TypeError(`a question has no ${unknown[0]}; it has ${known.join(", ")}`);
  const members = given.map(([name, value]) => [
    KEYS[name] ?? name,
    DESCRIBES.includes(name) ? documentOf(value) : value,
  ]);
  return json(Object.fromEntries(members));
}

/**
 * Waits, and throws a `WaitError` without an answer.
 * @template T
 * @param {() => T} wait
 */
export function unanswered(wait) {
  try {
    return wait();
  } catch (thrown) {
    const { tag, val } = /** @type {{ tag?: string, val?: string | null }} */ (thrown ?? {});
    if (tag === "not-granted") throw new WaitError(tag, String(val));
    if (tag !== "denied" && tag !== "expired" && tag !== "cancelled") throw thrown;
    const comment = tag === "denied" ? (val ?? undefined) : undefined;
    throw new WaitError(tag, comment === undefined ? REASONS[tag] : `${REASONS[tag]}: ${comment}`, comment);
  }
}

/**
 * An answer, as the author's schema reads it.
 * @param {string} text
 * @param {import("./index.d.ts").Describes} [response]
 */
export function answerOf(text, response) {
  const value = JSON.parse(text);
  if (response === undefined) return value;
  const outcome = schemaOf(response)["~standard"].validate(value);
  if (outcome instanceof Promise)
    throw new Failed("the schema of an answer checks it with a promise; use one that checks at once");
  if (outcome.issues)
    throw new WaitError("malformed", `the answer cannot be read: ${explain(outcome.issues)}`);
  return outcome.value;
}

/**
 * The answer to a question with choices.
 * @param {string} text
 * @returns {any}
 */
export function choiceOf(text) {
  const { decision, data } = JSON.parse(text);
  return { decision, data };
}
