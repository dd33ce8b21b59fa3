/**
 * The validator that RJSF asks, over @cfworker/json-schema: draft 2020-12, and no code made from text, so that it works under a
 * Content-Security-Policy without `unsafe-eval`. The host validates again; this one is for telling people early.
 */
import { type Schema as CfSchema, dereference, type OutputUnit, validate } from "@cfworker/json-schema";
import type {
  ErrorSchema,
  RJSFSchema,
  RJSFValidationError,
  ValidationData,
  ValidatorType,
} from "@rjsf/utils";
import { isExact } from "../json-text.js";
import { parts } from "../pointer.js";

/** Where the whole schema is known as, so that a part of it can refer to it. */
const ROOT = "https://toolgate.invalid/root";
const PART = "https://toolgate.invalid/part";

/** One thing that is wrong: where, and what. */
export interface Finding {
  path: string[];
  keyword: string;
  message: string;
}

/** Everything that is wrong with a value. A schema that cannot be followed finds nothing: the host has the last word. */
export function findings(schema: unknown, value: unknown, root: unknown = schema): Finding[] {
  try {
    return spoken(run(schema, value, root, false));
  } catch {
    return [];
  }
}

/** Whether a value fits. */
export function fits(schema: unknown, value: unknown, root: unknown = schema): boolean {
  try {
    return run(schema, value, root, true).length === 0;
  } catch {
    return false;
  }
}

function run(schema: unknown, value: unknown, root: unknown, isHurried: boolean): OutputUnit[] {
  // Both are copied: the library marks what it is given.
  const whole = copy(root);
  const lookup = dereference(whole as CfSchema, undefined, new URL(ROOT));
  const isPart = schema !== root;
  const part = isPart ? copy(schema, ROOT) : whole;
  if (isPart) dereference(part as CfSchema, lookup, new URL(PART));
  // A form without any entry is an empty object to its schema, and not nothing.
  const instance = value === undefined ? {} : value;
  const result = validate(instance, part as CfSchema, "2020-12", lookup, isHurried);
  return result.valid ? [] : result.errors;
}

/** A copy of a schema, in which `#…` refers into another document if one is given. */
function copy<T>(schema: T, document?: string): T {
  if (Array.isArray(schema)) return schema.map((part) => copy(part, document)) as T;
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).map(([keyword, part]) => {
    const isReference = keyword === "$ref" && typeof part === "string" && part.startsWith("#");
    return [keyword, isReference && document !== undefined ? document + part : copy(part, document)];
  });
  return Object.fromEntries(entries) as T;
}

/** What the library found, without the errors that only say that there are errors within. */
function spoken(errors: OutputUnit[]): Finding[] {
  const wraps = ({ keyword }: OutputUnit) => keyword === "false" || keyword === "if";
  const shown = branch(errors).filter(
    (error, _, all) => !wraps(error) && !all.some((other) => isWithin(other, error)),
  );
  // Where everything is of that sort, it still is wrong.
  const found = (shown.length === 0 ? errors.slice(0, 1) : shown).map(finding);
  return found.filter((one, index) => found.findIndex((other) => same(one, other)) === index);
}

function isWithin(inner: OutputUnit, outer: OutputUnit): boolean {
  if (inner === outer || inner.keyword === "false") return false;
  return inner.keywordLocation.startsWith(`${outer.keywordLocation}/`);
}

/** Of alternatives that all fail, the one that fails least is probably meant: the others are not told. */
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
  // Where the type or the mark of an alternative is wrong, it is another one.
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
      return "This fits none of the choices, or more than one.";
    case "additionalProperties":
    case "unevaluatedProperties":
      return `${/^Property "[\s\S]*"/.exec(error)?.[0] ?? "A member"} is not expected here.`;
    case "format":
      return `This is not of the format ${/format "(.*)"/.exec(error)?.[1] ?? "that is expected"}.`;
    default:
      return error.replace(/^Instance /, "This ");
  }
}

function same(a: Finding, b: Finding): boolean {
  return a.message === b.message && a.path.join("/") === b.path.join("/");
}

/** Whether a number's field left what was typed as text, since as a number it would be another one. */
function isLong({ path, keyword }: Finding, data: unknown): boolean {
  if (keyword !== "type") return false;
  let at = data;
  for (const part of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return false;
    at = (at as Record<string, unknown>)[part];
  }
  return typeof at === "string" && !Number.isNaN(Number(at)) && !isExact(at);
}

/** Findings as RJSF hangs them under its fields. */
export function errorSchema(found: readonly Finding[]): ErrorSchema {
  const root: ErrorSchema = {};
  for (const { path, message } of found) {
    // Such a name is in no form (`isStrange`); as a key it would reach into what every object has.
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
      if (isLong(one, data)) one.message = "This number has too many digits to arrive as it is.";
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
