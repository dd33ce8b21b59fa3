// Converts an author's declarations to the form of the interface, and finds mistakes in them. The host checks them
// again, and more thoroughly. Mistakes that are found here already appear in a unit test.

import { misplaced, OPTIONS } from "./options.js";
import { documentOf, NOTHING } from "./schema.js";

/**
 * @typedef {import("./tool.js").DeclaredTool} DeclaredTool
 *
 * @typedef {object} Declaration A tool in the form of the interface.
 * @property {string} name
 * @property {string} description
 * @property {string} parameters
 * @property {import("./tool.js").Executor} executor
 * @property {"auto" | "requires-approval"} approval
 * @property {boolean} streaming
 * @property {string} options
 */

/** The members that are not options, by the kinds of tools that have them. */
const OWN = {
  name: ["server", "client", "human", "provider"],
  description: ["server", "client", "human", "provider"],
  parameters: ["server", "client", "human", "provider"],
  approval: ["server", "client", "human", "provider"],
  streaming: ["server", "client"],
  run: ["server"],
};

/**
 * @param {DeclaredTool} tool
 * @returns {{ declaration: Declaration, findings: string[] }}
 */
export function declare({ executor, definition }) {
  const { name, description, approval = "auto", streaming = false } = definition;
  /** @type {string[]} */
  const findings = [];
  /** @type {<T>(what: string, step: () => T) => T | undefined} */
  const attempt = (what, step) => {
    try {
      return step();
    } catch (error) {
      findings.push(`${what} ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  };

  if (typeof name !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    findings.push("its name is 1 to 64 of the characters a-z A-Z 0-9 _ -");
  }
  if (typeof description !== "string" || description.trim() === "") {
    findings.push("its description tells the model what it does and when to use it; it is not empty");
  }
  if (executor === "server" && typeof definition.run !== "function") findings.push("run is a function");
  if (typeof streaming !== "boolean") findings.push("streaming is true or false");
  const gated = approval === "requires-approval";
  if (!gated && approval !== "auto") findings.push('approval is "auto" or "requires-approval"');
  if (gated && executor === "human")
    findings.push("a question cannot require an approval: approving it is circular");
  if (gated && executor === "provider")
    findings.push("a provider's call cannot require an approval: there is no moment to stop at");

  const parameters =
    attempt("its parameters:", () => parametersOf(definition.parameters ?? NOTHING)) ?? NOTHING;
  /** @type {Record<string, unknown>} */
  const options = {};
  for (const [written, value] of Object.entries(definition)) {
    if (value === undefined) continue;
    if (Object.hasOwn(OWN, written)) {
      if (!OWN[/** @type {keyof typeof OWN} */ (written)].includes(executor))
        findings.push(`${written}: a ${executor} tool has none`);
      continue;
    }
    const option = Object.hasOwn(OPTIONS, written) ? OPTIONS[written] : undefined;
    const wrong = option
      ? misplaced(option, executor, gated, definition.durable === true)
      : `is not known; known are ${Object.keys(OPTIONS).join(", ")}`;
    if (!option || wrong) findings.push(`${written}: ${wrong}`);
    else options[option.key] = attempt(written, () => option.read(value, definition));
  }
  const declaration = {
    name: String(name),
    description: String(description),
    parameters: JSON.stringify(parameters),
    executor,
    approval: gated ? /** @type {const} */ ("requires-approval") : /** @type {const} */ ("auto"),
    streaming: streaming === true,
    options: JSON.stringify(options),
  };
  return { declaration, findings };
}

/** @param {unknown} description */
function parametersOf(description) {
  if (typeof description !== "object" || description === null) throw new Error("they are a schema");
  const document = documentOf(/** @type {import("./schema.js").Describes} */ (description));
  if (document.type !== "object")
    throw new Error('they are those of an object: the root of the JSON Schema says "type": "object"');
  return document;
}
