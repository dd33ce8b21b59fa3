// Runs one call of a server tool, from the texts of the interface to the author's function and back.

import { answerOf, choiceOf, MEMBERS, textOf, unanswered } from "./durable.js";
import { Failed, Failure, failureOf, InvalidArguments } from "./failure.js";
import { json } from "./json.js";
import { explain } from "./schema.js";
import { describe, wellFormed } from "./text.js";

/**
 * @typedef {object} Request A call, as the interface passes it.
 * @property {string} id
 * @property {string} tool
 * @property {string} arguments
 * @property {string} idempotencyKey
 * @property {number} attempt
 * @property {string} scope
 *
 * @typedef {object} Host The functions that a host offers to a call.
 * @property {(update: { message: string, fraction: number | undefined, data: string | undefined }) => void} progress
 * @property {(level: import("./index.d.ts").Level, message: string) => void} log
 * @property {() => boolean} stopRequested
 * @property {(kind: import("./durable.js").Kind, question: string) => string} wait It throws `{ tag, val }` without an answer.
 * @property {(ms: number) => void} sleep It throws the same.
 * @property {boolean} waits Whether the engine can wait for a promise.
 */

/** A running call. Authors know it as `Call`. */
class OpenCall {
  #host;

  /**
   * @param {Request} request
   * @param {Host} host
   */
  constructor(request, host) {
    this.#host = host;
    this.id = request.id;
    this.tool = request.tool;
    this.idempotencyKey = request.idempotencyKey;
    this.attempt = Number(request.attempt);
    /** @type {import("./index.d.ts").Scope} */
    this.scope = JSON.parse(request.scope);
  }

  /**
   * @param {string} message
   * @param {number} [fraction]
   * @param {unknown} [data]
   */
  progress(message, fraction, data) {
    this.#host.progress({
      message: wellFormed(String(message)),
      fraction,
      data: data === undefined ? undefined : json(data),
    });
  }

  /**
   * @param {import("./index.d.ts").Level} level
   * @param {string} message
   */
  log(level, message) {
    this.#host.log(level, wellFormed(String(message)));
  }

  stopRequested() {
    return this.#host.stopRequested();
  }

  /** @param {import("./durable.js").Asked} question */
  ask(question) {
    return answerOf(this.#wait("ask", textOf(question, MEMBERS.ask)), question.response);
  }

  /** @param {import("./durable.js").Asked} question */
  choose(question) {
    return choiceOf(this.#wait("ask", textOf(question, MEMBERS.choose)));
  }

  /** @param {import("./durable.js").Asked} question */
  approve(question) {
    return answerOf(this.#wait("approve", textOf(question, MEMBERS.approve)));
  }

  /** @param {import("./durable.js").Asked} external */
  awaitExternal(external) {
    const text = this.#wait("awaitExternal", textOf(external, MEMBERS.awaitExternal));
    return answerOf(text, external.schema);
  }

  /** @param {readonly import("./index.d.ts").ToolCall[]} calls */
  callTools(calls) {
    return answerOf(this.#wait("callTools", json({ calls })));
  }

  /** @param {number} ms */
  sleep(ms) {
    if (!(ms >= 0 && ms <= Number.MAX_SAFE_INTEGER))
      throw new RangeError(`a sleep of ${ms} ms is not possible`);
    unanswered(() => this.#host.sleep(Math.round(ms)));
  }

  /**
   * @param {import("./durable.js").Kind} kind
   * @param {string} question
   */
  #wait(kind, question) {
    return unanswered(() => this.#host.wait(kind, question));
  }
}

/**
 * Runs one call. The result is a JSON text, or a promise of one if the tool returned a promise.
 * @param {import("./plugin.js").DeclaredPlugin} plugin
 * @param {Request} request
 * @param {Host} host
 * @returns {string | Promise<string>}
 * @throws `{ tag, val }`, the form in which the engines' bindings expect a failure.
 */
export function dispatch(plugin, request, host) {
  try {
    const server = plugin.servers.get(request.tool);
    if (!server) throw new Failed(`the plugin runs no tool "${request.tool}"`);
    const args = checked(server.parameters, JSON.parse(request.arguments));
    const result = after(args, (/** @type {unknown} */ args) =>
      server.run(args, new OpenCall(request, host)),
    );
    if (!isPromise(result)) return written(result);
    if (!host.waits) {
      throw new Failed(
        `"${request.tool}" returned a promise, and QuickJS cannot wait for one: ` +
          'let run return its result, or build the plugin with "toolgate": {"engine": "starlingmonkey"} in package.json',
      );
    }
    return result.then(written).catch((error) => fail(error, host));
  } catch (error) {
    return fail(error, host);
  }
}

/**
 * @param {import("./schema.js").Schema | undefined} schema
 * @param {unknown} args
 */
function checked(schema, args) {
  if (!schema) return args;
  return after(
    schema["~standard"].validate(args),
    (/** @type {import("./index.d.ts").Checked<unknown>} */ outcome) => {
      if (outcome.issues) throw new InvalidArguments(explain(outcome.issues));
      return outcome.value;
    },
  );
}

/** @param {unknown} result */
function written(result) {
  const text = json(result ?? null);
  if (text === undefined) throw new Failed(`the tool returned a ${typeof result}, which has no JSON form`);
  return text;
}

/**
 * @param {unknown} error
 * @param {Host} host
 * @returns {never}
 */
function fail(error, host) {
  const failure = failureOf(error);
  // Authors have to correct errors that they did not throw on purpose. The stack shows them where.
  if (!(error instanceof Failure)) logLines(host, "error", describe(error));
  throw { ...failure, val: wellFormed(failure.val) };
}

/**
 * Logs a text of several lines, such as a stack, line by line.
 * @param {Pick<Host, "log">} host
 * @param {import("./index.d.ts").Level} level
 * @param {string} text
 */
export function logLines(host, level, text) {
  for (const line of wellFormed(text).split("\n")) host.log(level, line);
}

/**
 * @template T
 * @param {T | Promise<T>} value
 * @param {(value: T) => unknown} step
 */
function after(value, step) {
  return isPromise(value) ? value.then(step) : step(value);
}

/**
 * @param {unknown} value
 * @returns {value is Promise<any>}
 */
function isPromise(value) {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
