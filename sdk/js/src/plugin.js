// All tools of a plugin, checked once: when the component is built, and when a test imports the plugin.

import { declare } from "./declare.js";
import { schemaOf } from "./schema.js";
import { DeclaredTool } from "./tool.js";

/**
 * @typedef {object} ServerEntry
 * @property {import("./schema.js").Schema | undefined} parameters
 * @property {(args: unknown, call: import("./index.d.ts").Call) => unknown} run
 */

/** What a plugin declares and runs. Authors know it as the opaque `Plugin`. */
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
      throw new Error(`what the plugin declares is not right:\n  ${findings.join("\n  ")}`);
    this.declarations = declared.map(({ declaration }) => declaration);
    for (const { name, executor, definition } of tools) {
      if (executor !== "server") continue;
      const { parameters, run } = definition;
      const schema = parameters
        ? schemaOf(/** @type {import("./schema.js").Describes} */ (parameters))
        : undefined;
      warmUp(schema);
      this.servers.set(name, { parameters: schema, run: /** @type {ServerEntry["run"]} */ (run) });
    }
    Object.freeze(this);
  }
}

/**
 * Schema libraries prepare much when they first look at a value. Done here, it becomes part of the component's snapshot and
 * not of every call.
 * @param {import("./schema.js").Schema | undefined} schema
 */
function warmUp(schema) {
  try {
    const checked = schema?.["~standard"].validate({});
    if (checked instanceof Promise) checked.catch(() => {});
  } catch {
    // A check of the author's own may throw on what is no argument; in a call that is reported.
  }
}

/** @type {typeof import("./index.d.ts").plugin} */
export const plugin = (tools) => {
  if (!Array.isArray(tools) || !tools.every((one) => one instanceof DeclaredTool)) {
    throw new TypeError("plugin([…]) takes a list of what tool(), client(), human() and provider() give");
  }
  return /** @type {import("./index.d.ts").Plugin} */ (/** @type {unknown} */ (new DeclaredPlugin(tools)));
};
