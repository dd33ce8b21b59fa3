/**
 * A plugin's schema, made safe for a form. A regular expression can block a page forever, so patterns are removed: the host checks
 * them when the answer arrives, and the form shows its errors. Deceptive text is escaped.
 */
import { line, lines } from "../text.js";

/** A JSON Schema. */
export type Schema = boolean | { [keyword: string]: unknown };

const SINGLE = new Set([
  "items",
  "contains",
  "additionalProperties",
  "unevaluatedItems",
  "unevaluatedProperties",
  "propertyNames",
  "not",
  "if",
  "then",
  "else",
]);
const LISTS = new Set(["prefixItems", "allOf", "anyOf", "oneOf"]);
const MAPS = new Set(["$defs", "definitions", "dependentSchemas"]);

/** Keywords without subschemas. Keywords in neither list are dropped, and the host checks them when the answer arrives. */
const PLAIN = new Set([
  "$ref",
  "type",
  "enum",
  "const",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minContains",
  "maxContains",
  "required",
  "minProperties",
  "maxProperties",
  "dependentRequired",
]);

/** Formats that have a visible field. All others, such as `hidden`, are dropped. */
const FORMATS = new Set(["date", "date-time", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname"]);

/** Reference targets that this module has made safe. */
const REFERENCE = /^#($|\/(\$defs|definitions|properties)\/)/;

/** The schema without patterns and with escaped texts. The rest is unchanged. */
export function forPeople(schema: Schema): Schema {
  return readable(schema, JSON.stringify(schema).includes('"patternProperties"'));
}

/** Names with a meaning in JavaScript. A schema with such a name gets a JSON field instead of a form. */
export function isStrange(value: unknown): boolean {
  const text = JSON.stringify(value) ?? "";
  return /"(__proto__|constructor|prototype)"\s*:/.test(text) || hasFarReference(value);
}

/** Whether a reference leaves the parts that the form reads. */
function hasFarReference(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([keyword, part]) =>
      (keyword === "$ref" && (typeof part !== "string" || !REFERENCE.test(part))) || hasFarReference(part),
  );
}

function readable(schema: Schema, hasPatterns: boolean): Schema {
  if (typeof schema !== "object" || schema === null) return schema;
  const made: { [keyword: string]: unknown } = {};
  // Without the patterns, their members cannot be distinguished from members that no keyword allows.
  const dropped = new Set(["pattern", "patternProperties"]);
  if ("patternProperties" in schema) dropped.add("additionalProperties");
  if (hasPatterns) dropped.add("unevaluatedProperties");
  const inner = (part: unknown) => readable(part as Schema, hasPatterns);
  for (const [keyword, value] of Object.entries(schema)) {
    if (dropped.has(keyword)) continue;
    if (keyword === "title" && typeof value === "string" && value.trim() !== "") made.title = line(value);
    else if (keyword === "description" && typeof value === "string") made.description = lines(value);
    else if (keyword === "properties" && isMap(value)) made.properties = named(value, inner);
    else if (MAPS.has(keyword) && isMap(value)) made[keyword] = mapped(value, inner);
    else if (LISTS.has(keyword) && Array.isArray(value)) made[keyword] = value.map(inner);
    else if (SINGLE.has(keyword) && !Array.isArray(value)) made[keyword] = inner(value);
    else if (keyword === "format" && FORMATS.has(String(value))) made.format = value;
    else if (PLAIN.has(keyword)) made[keyword] = value;
  }
  const { enum: choices } = schema;
  if (Array.isArray(choices) && choices.some(deceives) && !("oneOf" in made)) {
    delete made.enum;
    made.oneOf = choices.map((choice) => ({
      const: choice,
      title: line(typeof choice === "string" ? choice : JSON.stringify(choice)),
    }));
  }
  return made;
}

/** The members of an object. A member with a deceptive name gets an escaped title. */
function named(
  properties: Record<string, unknown>,
  inner: (part: unknown) => Schema,
): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, part]) => {
      const made = inner(part);
      const needsTitle = line(name) !== name && typeof made === "object" && !("title" in made);
      return [name, needsTitle ? { ...made, title: line(name) } : made];
    }),
  );
}

function mapped(parts: Record<string, unknown>, inner: (part: unknown) => Schema): Record<string, Schema> {
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, inner(part)]));
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function deceives(choice: unknown): boolean {
  return typeof choice === "string" && line(choice) !== choice;
}
