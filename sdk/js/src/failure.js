// Three errors that become the three failures of the interface.

/** @typedef {"invalid-arguments" | "failed" | "unavailable"} Tag */

export class Failure extends Error {
  /** @type {Tag} */
  tag = "failed";

  /**
   * @param {string} message
   * @param {ErrorOptions} [options]
   */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

export class InvalidArguments extends Failure {
  /** @type {"invalid-arguments"} */
  tag = "invalid-arguments";
}

export class Failed extends Failure {
  /** @type {"failed"} */
  tag = "failed";
}

export class Unavailable extends Failure {
  /** @type {"unavailable"} */
  tag = "unavailable";
}

/**
 * The failure for an error: its own if it has one. Otherwise `failed`, with its message and those of its causes.
 * @param {unknown} error
 * @returns {{ tag: Tag, val: string }}
 */
export function failureOf(error) {
  if (error instanceof Failure) return { tag: error.tag, val: error.message };
  return { tag: "failed", val: messages(error) };
}

/** @param {unknown} error */
function messages(error) {
  const said = [];
  let next = error;
  // A chain of causes can be circular.
  for (let depth = 0; next !== undefined && next !== null && depth < 8; depth += 1) {
    if (!(next instanceof Error)) {
      said.push(String(next));
      break;
    }
    said.push(next.message ? `${next.name}: ${next.message}` : next.name);
    next = next.cause;
  }
  return said.join(": ") || "the tool threw nothing that says why";
}
