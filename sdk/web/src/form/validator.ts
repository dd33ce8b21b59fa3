/**
 * The validator for RJSF, based on @cfworker/json-schema. It knows the host's drafts and generates no code, so that it works under a
 * Content-Security-Policy without `unsafe-eval`. The host validates again; this validator reports errors early.
 */
import {
  type Schema as CfSchema,
  dereference,
  type OutputUnit,
  type SchemaDraft,
  validate,
} from "@cfworker/json-schema";
import type {
  ErrorSchema,
  RJSFSchema,
  RJSFValidationError,
  ValidationData,
  ValidatorType,
} from "@rjsf/utils";
import { isExact } from "../json-text.js";
import { parts } from "../pointer.js";

/** The id of the whole schema, for references from its parts. */
const ROOT = "https://toolgate.invalid/root";
const PART = "https://toolgate.invalid/part";

/** One error and its place. */
export interface Finding {
  path: string[];
  keyword: string;
  message: string;
}

/** All errors of a value. A schema that cannot be evaluated gives none: the host decides. */
export function findings(schema: unknown, value: unknown, root: unknown = schema): Finding[] {
  try {
    return spoken(run(schema, value, root, false));
  } catch {
    return [];
  }
}

/** Whether a value is valid. */
export function fits(schema: unknown, value: unknown, root: unknown = schema): boolean {
  try {
    return run(schema, value, root, true).length === 0;
  } catch {
    return false;
  }
}

function run(schema: unknown, value: unknown, root: unknown, isHurried: boolean): OutputUnit[] {
  // Both are copied, because the library modifies its input.
  const whole = unnamed(copy(root));
  const lookup = dereference(whole as CfSchema, undefined, new URL(ROOT));
  const isPart = schema !== root;
  const part = isPart ? copy(schema, ROOT) : whole;
  if (isPart) dereference(part as CfSchema, lookup, new URL(PART));
  // An empty form is an empty object for its schema, not undefined.
  const instance = value === undefined ? {} : value;
  const result = validate(instance, part as CfSchema, draft(root), lookup, isHurried);
  return result.valid ? [] : result.errors;
}

/** The whole schema without its own address, which nothing refers to. */
function unnamed(whole: unknown): unknown {
  if (typeof whole === "object" && whole !== null && "$id" in whole && !String(whole.$id).startsWith("#"))
    delete whole.$id;
  return whole;
}

/** The draft of a schema. */
function draft(schema: unknown): SchemaDraft {
  const named = typeof schema === "object" && schema !== null && "$schema" in schema ? schema.$schema : "";
  if (String(named).includes("/draft-07/")) return "7";
  return String(named).includes("/2019-09/") ? "2019-09" : "2020-12";
}

/** Copies a schema. If another document is given, `#…` refers to it. */
function copy<T>(schema: T, document?: string): T {
  if (Array.isArray(schema)) return schema.map((part) => copy(part, document)) as T;
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).map(([keyword, part]) => {
    const isReference = keyword === "$ref" && typeof part === "string" && part.startsWith("#");
    return [keyword, isReference && document !== undefined ? document + part : copy(part, document)];
  });
  return Object.fromEntries(entries) as T;
}

/** The library's errors, without those that only report nested errors. */
function spoken(errors: OutputUnit[]): Finding[] {
  const wraps = ({ keyword }: OutputUnit) => keyword === "false" || keyword === "if";
  const shown = branch(errors).filter(
    (error, _, all) => !wraps(error) && !all.some((other) => isWithin(other, error)),
  );
  // If only such errors remain, the value is still invalid.
  const found = (shown.length === 0 ? errors.slice(0, 1) : shown).map(finding);
  return found.filter((one, index) => found.findIndex((other) => same(one, other)) === index);
}

function isWithin(inner: OutputUnit, outer: OutputUnit): boolean {
  if (inner === outer || inner.keyword === "false") return false;
  return inner.keywordLocation.startsWith(`${outer.keywordLocation}/`);
}

/** If all alternatives fail, only the errors of the closest one are reported. */
function branch(errors: OutputUnit[]): OutputUnit[] {
  const choice = errors.find(({ keyword }) => keyword === "oneOf" || keyword === "anyOf");
  if (choice === undefined) return errors;
  const prefix = `${choice.keywordLocation}/`;
  const groups = new Map<string, OutputUnit[]>();
  for (const error of errors) {
    if (!error.keywordLocation.startsWith(prefix)) continue;
    const index = error.keywordLocation.slice(prefix.length).split("/")[0] ?? "";
    groups.set(index, [...(groups.get(index) ?? []), error]);
  }
  // A wrong type or discriminator means another alternative.
  const isOther = ({ keyword }: OutputUnit) =>
    keyword === "const" || keyword === "enum" || keyword === "type";
  const weight = (group: OutputUnit[]) => group.length + (group.some(isOther) ? 100 : 0);
  const [nearest] = [...groups.values()].sort((a, b) => weight(a) - weight(b));
  const others = errors.filter((error) => !error.keywordLocation.startsWith(prefix) && error !== choice);
  const within = nearest === undefined || nearest.some(isOther) ? [choice] : branch(nearest);
  return [...branch(others), ...within];
}

function finding({ instanceLocation, keyword, error }: OutputUnit): Finding {
  const path = parts(instanceLocation.replace(/^#/, ""));
  const missing = keyword === "required" ? /required property "([\s\S]*)"\.$/.exec(error)?.[1] : undefined;
  if (missing !== undefined) return { path: [...path, missing], keyword, message: "This is required." };
  return { path, keyword, message: wording(keyword, error) };
}

function wording(keyword: string, error: string): string {
  switch (keyword) {
    case "type":
      return `Expected: ${/Expected (.*)\.$/.exec(error)?.[1]?.replaceAll('"', "") ?? "another type"}.`;
    case "oneOf":
    case "anyOf":
      return "This matches none of the choices, or more than one.";
    case "additionalProperties":
    case "unevaluatedProperties":
      return `${/^Property "[\s\S]*"/.exec(error)?.[0] ?? "A member"} is not expected here.`;
    case "format":
      return `This is not in the format ${/format "(.*)"/.exec(error)?.[1] ?? "that the schema names"}.`;
    default:
      return error.replace(/^Instance /, "This ");
  }
}

function same(a: Finding, b: Finding): boolean {
  return a.message === b.message && a.path.join("/") === b.path.join("/");
}

/** Whether a number field kept its text because JavaScript cannot hold the number exactly. */
function isLong({ path, keyword }: Finding, data: unknown): boolean {
  if (keyword !== "type") return false;
  let at = data;
  for (const part of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return false;
    at = (at as Record<string, unknown>)[part];
  }
  return typeof at === "string" && !Number.isNaN(Number(at)) && !isExact(at);
}

/** Converts errors to RJSF's form. */
export function errorSchema(found: readonly Finding[]): ErrorSchema {
  const root: ErrorSchema = {};
  for (const { path, message } of found) {
    // `isStrange` excludes such names from forms. As a key it would reach the object prototype.
    if (path.includes("__proto__")) continue;
    let at = root;
    for (const part of path) {
      const next: ErrorSchema = (Object.hasOwn(at, part) ? at[part] : undefined) ?? {};
      at[part] = next;
      at = next;
    }
    at.__errors = [...(at.__errors ?? []), message];
  }
  return root;
}

class Validator implements ValidatorType {
  validateFormData(data: unknown, schema: RJSFSchema): ValidationData<unknown> {
    const found = findings(schema, data);
    for (const one of found)
      if (isLong(one, data)) one.message = "This number has more digits than can be sent exactly.";
    const errors = found.map(
      ({ path, keyword, message }): RJSFValidationError => ({
        name: keyword,
        property: path.map((part) => `.${part}`).join(""),
        message,
        stack: `${path.join(" › ")} ${message}`.trim(),
      }),
    );
    return { errors, errorSchema: errorSchema(found) };
  }

  isValid(schema: RJSFSchema, data: unknown, root: RJSFSchema): boolean {
    return fits(schema, data, root);
  }

  rawValidation<Result>(schema: RJSFSchema, data?: unknown): { errors?: Result[] } {
    return { errors: findings(schema, data) as Result[] };
  }
}

export const validator: ValidatorType = new Validator();
