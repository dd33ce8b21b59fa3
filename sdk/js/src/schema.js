// Descriptions of values in one form: schemas of libraries (Standard Schema with its JSON Schema part) and plain JSON
// Schemas.

/**
 * @typedef {import("./index.d.ts").Describes} Describes
 * @typedef {import("./index.d.ts").Schema} Schema
 * @typedef {import("./index.d.ts").Issue} Issue
 */

/** The draft of a schema without `$schema`. */
const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/** The vendor of plain JSON Schemas. */
const PLAIN = "toolgate";

/** The arguments of a tool that takes none. */
export const NOTHING = { type: "object", properties: {}, additionalProperties: false };

/** @type {(schema: import("./index.d.ts").JsonSchema, check?: Schema) => Schema} */
function described(schema, check) {
  return {
    "~standard": {
      version: 1,
      vendor: PLAIN,
      validate: check ? (value) => check["~standard"].validate(value) : (value) => ({ value }),
      jsonSchema: { input: () => schema },
    },
  };
}

export const jsonSchema = /** @type {typeof import("./index.d.ts").jsonSchema} */ (described);

/**
 * Converts any description to a schema.
 * @param {Describes} description
 * @returns {Schema}
 */
export function schemaOf(description) {
  return isStandard(description) ? description : described(description);
}

/**
 * The JSON Schema of a description.
 * @param {Describes} description
 * @returns {Record<string, unknown>}
 * @throws With the part that the library cannot express in JSON Schema.
 */
export function documentOf(description) {
  const standard = schemaOf(description)["~standard"];
  if (typeof standard.jsonSchema?.input !== "function") {
    throw new Error(
      `a schema of ${standard.vendor} here has no JSON Schema of its own; write jsonSchema(document, schema), ` +
        "with zod/mini for instance jsonSchema(z.toJSONSchema(schema), schema)",
    );
  }
  const document = standard.jsonSchema.input({ target: "draft-2020-12" });
  // Without `$schema`, a schema has this draft. Libraries write it all the same, and models would pay for it.
  const { $schema, ...rest } = document;
  return standard.vendor !== PLAIN && $schema === DRAFT ? rest : document;
}

/**
 * The problems of a value, each with its position as a JSON Pointer.
 * @param {readonly Issue[]} issues
 */
export function explain(issues) {
  return issues.map(({ message, path }) => `${pointer(path ?? [])}${message}`).join("; ");
}

/** @param {NonNullable<Issue["path"]>} path */
function pointer(path) {
  const steps = path.map((step) => String(typeof step === "object" ? step.key : step));
  return (
    steps.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("") +
    (path.length ? ": " : "")
  );
}

/**
 * @param {unknown} description
 * @returns {description is Schema}
 */
function isStandard(description) {
  return (
    (typeof description === "object" || typeof description === "function") &&
    description !== null &&
    "~standard" in description
  );
}
