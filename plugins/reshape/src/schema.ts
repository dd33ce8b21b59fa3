// Validates a document against a JSON Schema and reports every problem. It supports the part of draft 2020-12 that
// people write by hand, and lists the other keywords.

import { InvalidArguments, type Json, type JsonObject } from "@toolgate/sdk";
import { at, escaped, isObject } from "./pointer.ts";
import { same } from "./rows.ts";

export interface Problem {
  /** The position in the document, as a JSON Pointer. */
  at: string;
  /** The keyword of the schema, as a JSON Pointer into it. */
  keyword: string;
  message: string;
}

export interface Report {
  valid: boolean;
  problems: Problem[];
  /** Keywords that were not looked at. */
  ignored: string[];
}

/** The most problems that are listed. With more, the document is wrong as a whole. */
const MAX_PROBLEMS = 100;

/** How often a schema may refer to itself for the same value. */
const DEEPEST = 200;

const NOTES = ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];
const OF_DOCUMENTS = ["$schema", "$id", "$comment", "$defs", "definitions", ...NOTES];

type Check = (limit: Json, value: Json, here: Here) => string | undefined;

interface Here {
  document: string;
  schema: string;
  depth: number;
  siblings: JsonObject;
  /** Validates a nested value against a nested schema. */
  within(value: Json, schema: Json, document: string, keyword: string): void;
  /** Whether a value is valid, without reporting problems. */
  fits(value: Json, schema: Json): boolean;
}

const numbers =
  (says: (limit: number, value: number) => boolean, words: string): Check =>
  (limit, value) =>
    typeof value === "number" && typeof limit === "number" && !says(limit, value)
      ? `${value} is not ${words} ${limit}`
      : undefined;

const sizes =
  (size: (value: Json) => number | undefined, least: boolean, unit: string): Check =>
  (limit, value) => {
    const count = size(value);
    if (count === undefined || typeof limit !== "number" || (least ? count >= limit : count <= limit))
      return undefined;
    return `it has ${count} ${unit}, at ${least ? "least" : "most"} ${limit}`;
  };

const length = (value: Json) => (typeof value === "string" ? [...value].length : undefined);
const entries = (value: Json) => (Array.isArray(value) ? value.length : undefined);
const members = (value: Json) => (isObject(value) ? Object.keys(value).length : undefined);
const list = (value: Json | undefined) => (Array.isArray(value) ? value : []);

const CHECKS: Readonly<Record<string, Check>> = {
  type: (limit, value) => {
    const wanted = list(Array.isArray(limit) ? limit : [limit]);
    return wanted.some((type) => is(value, type))
      ? undefined
      : `it is ${kind(value)}, not ${wanted.join(" or ")}`;
  },
  enum: (limit, value) =>
    list(limit).some((one) => same(one, value)) ? undefined : `it is not one of ${JSON.stringify(limit)}`,
  const: (limit, value) => (same(limit, value) ? undefined : `it is not ${JSON.stringify(limit)}`),
  minimum: numbers((limit, value) => value >= limit, "at least"),
  maximum: numbers((limit, value) => value <= limit, "at most"),
  exclusiveMinimum: numbers((limit, value) => value > limit, "more than"),
  exclusiveMaximum: numbers((limit, value) => value < limit, "less than"),
  multipleOf: numbers(
    (limit, value) => Math.abs(value / limit - Math.round(value / limit)) < 1e-9,
    "a multiple of",
  ),
  minLength: sizes(length, true, "characters"),
  maxLength: sizes(length, false, "characters"),
  minItems: sizes(entries, true, "entries"),
  maxItems: sizes(entries, false, "entries"),
  minProperties: sizes(members, true, "members"),
  maxProperties: sizes(members, false, "members"),
  pattern: (limit, value) => {
    if (typeof value !== "string" || typeof limit !== "string" || expression(limit).test(value))
      return undefined;
    return `it does not match ${limit}`;
  },
  uniqueItems: (limit, value) => {
    const all = limit === true ? list(value) : [];
    const twice = all.findIndex((entry, index) => all.slice(0, index).some((before) => same(before, entry)));
    return twice < 0 ? undefined : `entry ${twice} is there before`;
  },
  required: (limit, value) => {
    const missing = isObject(value)
      ? list(limit).filter((name) => typeof name === "string" && !Object.hasOwn(value, name))
      : [];
    return missing.length === 0
      ? undefined
      : `${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing`;
  },
  properties: (limit, value, here) => {
    if (!isObject(value) || !isObject(limit)) return;
    for (const [name, schema] of Object.entries(limit)) {
      const inner = Object.hasOwn(value, name) ? value[name] : undefined;
      if (inner !== undefined) here.within(inner, schema, escaped(name), escaped(name));
    }
    return undefined;
  },
  additionalProperties: (limit, value, here) => {
    if (!isObject(value)) return;
    const known = isObject(here.siblings.properties) ? here.siblings.properties : {};
    const patterns = isObject(here.siblings.patternProperties)
      ? Object.keys(here.siblings.patternProperties).map(expression)
      : [];
    for (const [name, inner] of Object.entries(value)) {
      if (Object.hasOwn(known, name) || patterns.some((pattern) => pattern.test(name))) continue;
      here.within(inner, limit, escaped(name), "");
    }
    return undefined;
  },
  patternProperties: (limit, value, here) => {
    if (!isObject(value) || !isObject(limit)) return;
    for (const [pattern, schema] of Object.entries(limit)) {
      for (const [name, inner] of Object.entries(value)) {
        if (expression(pattern).test(name)) here.within(inner, schema, escaped(name), escaped(pattern));
      }
    }
    return undefined;
  },
  items: (limit, value, here) => {
    const from = list(here.siblings.prefixItems).length;
    list(value).forEach((entry, index) => {
      if (index >= from) here.within(entry, limit, escaped(index), "");
    });
    return undefined;
  },
  prefixItems: (limit, value, here) => {
    list(limit).forEach((schema, index) => {
      const entry = list(value)[index];
      if (entry !== undefined) here.within(entry, schema, escaped(index), escaped(index));
    });
    return undefined;
  },
  allOf: (limit, value, here) => {
    list(limit).forEach((schema, index) => {
      here.within(value, schema, "", escaped(index));
    });
    return undefined;
  },
  anyOf: (limit, value, here) =>
    list(limit).some((schema) => here.fits(value, schema)) ? undefined : "it fits none of the alternatives",
  oneOf: (limit, value, here) => {
    const fitting = list(limit).filter((schema) => here.fits(value, schema)).length;
    return fitting === 1 ? undefined : `it fits ${fitting} of the alternatives, not one`;
  },
  not: (limit, value, here) => (here.fits(value, limit) ? "it fits what it must not" : undefined),
};

/** Validates a document. */
export function check(document: Json, schema: Json): Report {
  const problems: Problem[] = [];
  const ignored = new Set<string>();
  walk(document, schema, { document: "", schema: "", depth: 0 });
  return {
    valid: problems.length === 0,
    problems: problems.slice(0, MAX_PROBLEMS),
    ignored: [...ignored].sort(),
  };

  function walk(
    value: Json,
    rule: Json,
    { document: where, schema: keyword, depth }: { document: string; schema: string; depth: number },
  ): void {
    const found = (message: string, name = "") =>
      void problems.push({ at: where, keyword: keyword + (name && escaped(name)), message });
    if (rule === false) found("it is not allowed");
    if (!isObject(rule)) return;
    if (depth > DEEPEST) {
      found("the schema refers to itself without an end");
      return;
    }
    const here = (name: string): Here => ({
      document: where,
      schema: keyword,
      depth,
      siblings: rule,
      within: (inner, innerRule, step, innerKeyword) =>
        walk(inner, innerRule, {
          document: where + step,
          schema: `${keyword}${escaped(name)}${innerKeyword}`,
          depth: depth + 1,
        }),
      fits: (inner, innerRule) => {
        const before = problems.length;
        walk(inner, innerRule, { document: where, schema: keyword, depth: depth + 1 });
        return problems.splice(before).length === 0;
      },
    });
    for (const [name, limit] of Object.entries(rule)) {
      if (problems.length > MAX_PROBLEMS) return;
      const look = Object.hasOwn(CHECKS, name) ? CHECKS[name] : undefined;
      if (name === "$ref") {
        const target =
          typeof limit === "string" && limit.startsWith("#")
            ? at(schema, decodeURIComponent(limit.slice(1)))
            : undefined;
        if (target === undefined) found(`${JSON.stringify(limit)} leads nowhere in this schema`, name);
        else walk(value, target, { document: where, schema: `${keyword}/$ref`, depth: depth + 1 });
      } else if (look) {
        const message = look(limit, value, here(name));
        if (message) found(message, name);
      } else if (!OF_DOCUMENTS.includes(name)) {
        ignored.add(name);
      }
    }
  }
}

function expression(pattern: string): RegExp {
  try {
    return new RegExp(pattern, "u");
  } catch {
    throw new InvalidArguments(`/schema: ${JSON.stringify(pattern)} is not a regular expression`);
  }
}

function is(value: Json, type: Json): boolean {
  if (type === "integer") return Number.isInteger(value);
  return kind(value) === type;
}

function kind(value: Json): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
