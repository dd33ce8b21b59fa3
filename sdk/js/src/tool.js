// The four kinds of tools, as authors declare them. `plugin` reports all mistakes at once.

/**
 * @typedef {"server" | "client" | "human" | "provider"} Executor
 * @typedef {Record<string, unknown>} Definition
 */

/** A declared tool. Authors know it as the opaque `Tool`. */
export class DeclaredTool {
  /**
   * @param {Executor} executor
   * @param {Definition} definition
   */
  constructor(executor, definition) {
    this.executor = executor;
    this.definition = { ...definition };
    Object.freeze(this);
  }

  get name() {
    return String(this.definition.name);
  }
}

/** @param {Executor} executor */
const declare = (executor) => (/** @type {unknown} */ definition) => {
  if (typeof definition !== "object" || definition === null) {
    throw new TypeError(`a ${executor} tool is declared with an object: { name, description, … }`);
  }
  return /** @type {import("./index.d.ts").Tool} */ (
    /** @type {unknown} */ (new DeclaredTool(executor, { ...definition }))
  );
};

/** @type {typeof import("./index.d.ts").tool} */
export const tool = declare("server");

/** @type {typeof import("./index.d.ts").client} */
export const client = declare("client");

/** @type {typeof import("./index.d.ts").human} */
export const human = declare("human");

/** @type {typeof import("./index.d.ts").provider} */
export const provider = declare("provider");
