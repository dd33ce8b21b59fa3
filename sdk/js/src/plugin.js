// All tools of a plugin. They are checked once: when the component is built, and when a test imports the plugin.

import { declare } from "./declare.js";
import { schemaOf } from "./schema.js";
import { DeclaredTool } from "./tool.js";

/**
 * @typedef {object} ServerEntry
 * @property {import("./schema.js").Schema | undefined} parameters
 * @property {(args: unknown, call: import("./index.d.ts").Call) => unknown} run
 * @property {boolean} durable
 */

/** The declarations and functions of a plugin. Authors know it as the opaque `Plugin`. */
export class DeclaredPlugin {
  /** @param {readonly DeclaredTool[]} tools */
  constructor(tools) {
    this.tools = tools;
    /** @type {Map<string, ServerEntry>} */
    this.servers = new Map();
    const declared = tools.map((tool) => declare(tool));
    const findings = declared.flatMap(({ declaration, findings }) =>
      findings.map((what) => `${declaration.name}: ${what}`),
    );
    const names = declared.map(({ declaration }) => declaration.name);
    for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index))) {
      findings.push(`${name}: several tools have this name`);
    }
    if (findings.length > 0)
      throw new Error(`the plugin's declarations are wrong:\n  ${findings.join("\n  ")}`);
    this.declarations = declared.map(({ declaration }) => declaration);
    for (const { name, executor, definition } of tools) {
      if (executor !== "server") continue;
      const { parameters, run, durable = false } = definition;
      const schema = parameters
        ? schemaOf(/** @type {import("./schema.js").Describes} */ (parameters))
        : undefined;
      warmUp(schema);
      this.servers.set(name, {
        parameters: schema,
        run: /** @type {ServerEntry["run"]} */ (run),
        durable: durable === true,
      });
    }
    Object.freeze(this);
  }
}

/**
 * Validates a value once, because schema libraries do much preparation at the first one. Here it becomes part of the
 * component's snapshot instead of every call.
 * @param {import("./schema.js").Schema | undefined} schema
 */
function warmUp(schema) {
  try {
    const checked = schema?.["~standard"].validate({});
    if (checked instanceof Promise) checked.catch(() => {});
  } catch {
    // An author's own check may throw on a wrong value. In a call this is reported.
  }
}

/** @type {typeof import("./index.d.ts").plugin} */
export const plugin = (tools) => {
  if (!Array.isArray(tools) || !tools.every((one) => one instanceof DeclaredTool)) {
    throw new TypeError(
      "plugin([…]) takes a list of the results of tool(), client(), human() and provider()",
    );
  }
  return /** @type {import("./index.d.ts").Plugin} */ (/** @type {unknown} */ (new DeclaredPlugin(tools)));
};
