// Validates JSON Schema in tests, which have no host. Its draft is that of `$schema`, as on a host, and formats are only
// notes. References to other documents and the keywords `$dynamicRef`, `$recursiveRef`, `unevaluatedItems` and
// `unevaluatedProperties` are ignored.

import { isDeepStrictEqual } from "node:util";

/**
 * @typedef {boolean | Record<string, any>} Node A schema within a document.
 * @typedef {(value: any, bound: any, schema: Record<string, any>, root: Node, at: string) => Iterable<string>} Rule
 */

/**
 * The problems of a value, each with its position.
 * @param {Node} schema
 * @param {unknown} value
 * @param {Node} [root] The document that `$ref` refers to.
 * @param {string} [at]
 * @returns {string[]}
 */
export function misfits(schema, value, root = schema, at = "") {
  if (typeof schema === "boolean") return schema ? [] : [`${at || "/"}: is not allowed`];
  const rules = rulesOf(root);
  const lone = rules === DRAFT_07 && Object.hasOwn(schema, "$ref");
  return Object.entries(lone ? { $ref: schema.$ref } : schema).flatMap(([keyword, bound]) => {
    const rule = Object.hasOwn(rules, keyword) ? rules[keyword] : undefined;
    return rule ? [...rule(value, bound, schema, root, at)] : [];
  });
}

/** @type {(root: Node) => Record<string, Rule | undefined>} */
function rulesOf(root) {
  const draft = typeof root === "object" ? String(root.$schema) : "";
  if (draft.includes("/draft-07/")) return DRAFT_07;
  return draft.includes("/2019-09/") ? DRAFT_2019_09 : RULES;
}

/** @type {(holds: (value: any, bound: any) => boolean, words: (bound: any) => string) => Rule} */
const simple = (holds, words) =>
  function* (value, bound, _schema, _root, at) {
    if (!holds(value, bound)) yield `${at || "/"}: ${words(bound)}`;
  };

/** @type {(kind: string, holds: (value: any, bound: any) => boolean, words: string) => Rule} */
const bounded = (kind, holds, words) =>
  simple(
    (value, bound) => !is(value, kind) || holds(value, bound),
    (bound) => `${words} ${show(bound)}`,
  );

/** @type {(value: string) => number} */
const characters = (value) => [...value].length;
/** @type {(value: object) => number} */
const size = (value) => Object.keys(value).length;

/** @type {Record<string, Rule>} */
const RULES = {
  type: simple(
    (value, kinds) => [kinds].flat().some((kind) => is(value, kind)),
    (kinds) => `must be of type ${[kinds].flat().join(" or ")}`,
  ),
  const: simple(same, (bound) => `must be ${show(bound)}`),
  enum: simple(
    (value, choices) => choices.some((/** @type {unknown} */ choice) => same(value, choice)),
    (choices) => `must be one of ${choices.map(show).join(", ")}`,
  ),
  minimum: bounded("number", (value, bound) => value >= bound, "must be at least"),
  maximum: bounded("number", (value, bound) => value <= bound, "must be at most"),
  exclusiveMinimum: bounded("number", (value, bound) => value > bound, "must be more than"),
  exclusiveMaximum: bounded("number", (value, bound) => value < bound, "must be less than"),
  multipleOf: bounded("number", isMultiple, "must be a multiple of"),
  minLength: bounded("string", (value, bound) => characters(value) >= bound, "its characters are at least"),
  maxLength: bounded("string", (value, bound) => characters(value) <= bound, "its characters are at most"),
  pattern: bounded("string", (value, bound) => new RegExp(bound, "u").test(value), "must match"),
  minItems: bounded("array", (value, bound) => value.length >= bound, "its items are at least"),
  maxItems: bounded("array", (value, bound) => value.length <= bound, "its items are at most"),
  uniqueItems: bounded(
    "array",
    (value, bound) =>
      !bound ||
      value.every(
        (/** @type {any} */ one, /** @type {number} */ i) =>
          !value.slice(0, i).some((/** @type {any} */ other) => same(one, other)),
      ),
    "has an item twice: uniqueItems is",
  ),
  minProperties: bounded("object", (value, bound) => size(value) >= bound, "its members are at least"),
  maxProperties: bounded("object", (value, bound) => size(value) <= bound, "its members are at most"),
  *required(value, names, _schema, _root, at) {
    if (!is(value, "object")) return;
    for (const name of names) if (!Object.hasOwn(value, name)) yield `${step(at, name)}: is missing`;
  },
  *dependentRequired(value, needs, schema, root, at) {
    if (!is(value, "object")) return;
    for (const [name, names] of Object.entries(needs))
      if (Object.hasOwn(value, name))
        yield* /** @type {Rule} */ (RULES.required)(value, names, schema, root, at);
  },
  *dependentSchemas(value, needs, _schema, root, at) {
    if (!is(value, "object")) return;
    for (const [name, needed] of Object.entries(needs))
      if (Object.hasOwn(value, name)) yield* misfits(/** @type {Node} */ (needed), value, root, at);
  },
  *properties(value, known, _schema, root, at) {
    if (!is(value, "object")) return;
    for (const [name, schema] of Object.entries(known))
      if (Object.hasOwn(value, name))
        yield* misfits(/** @type {Node} */ (schema), value[name], root, step(at, name));
  },
  *patternProperties(value, known, _schema, root, at) {
    if (!is(value, "object")) return;
    for (const [pattern, schema] of Object.entries(known))
      for (const name of Object.keys(value))
        if (new RegExp(pattern, "u").test(name))
          yield* misfits(/** @type {Node} */ (schema), value[name], root, step(at, name));
  },
  *additionalProperties(value, others, { properties = {}, patternProperties = {} }, root, at) {
    if (!is(value, "object")) return;
    const patterns = Object.keys(patternProperties).map((pattern) => new RegExp(pattern, "u"));
    for (const name of Object.keys(value))
      if (!Object.hasOwn(properties, name) && !patterns.some((pattern) => pattern.test(name)))
        yield* misfits(others, value[name], root, step(at, name));
  },
  *propertyNames(value, names, _schema, root, at) {
    if (is(value, "object"))
      for (const name of Object.keys(value)) yield* misfits(names, name, root, step(at, name));
  },
  *prefixItems(value, schemas, _schema, root, at) {
    if (!is(value, "array")) return;
    for (const [i, schema] of schemas.entries())
      if (i < value.length) yield* misfits(schema, value[i], root, step(at, i));
  },
  *items(value, schema, { prefixItems = [] }, root, at) {
    if (!is(value, "array")) return;
    for (let i = prefixItems.length; i < value.length; i += 1)
      yield* misfits(schema, value[i], root, step(at, i));
  },
  *contains(value, schema, { minContains = 1, maxContains = Number.POSITIVE_INFINITY }, root, at) {
    if (!is(value, "array")) return;
    const found = value.filter(
      (/** @type {unknown} */ item) => misfits(schema, item, root).length === 0,
    ).length;
    if (found < minContains || found > maxContains)
      yield `${at || "/"}: has ${found} items of those that it must contain`;
  },
  *allOf(value, schemas, _schema, root, at) {
    for (const schema of schemas) yield* misfits(schema, value, root, at);
  },
  *anyOf(value, schemas, _schema, root, at) {
    const tried = schemas.map((/** @type {Node} */ schema) => misfits(schema, value, root, at));
    if (tried.every((/** @type {string[]} */ wrong) => wrong.length > 0))
      yield tried.length === 1 ? tried[0][0] : `${at || "/"}: fits none of ${tried.length} schemas`;
  },
  *oneOf(value, schemas, _schema, root, at) {
    const fitting = schemas.filter(
      (/** @type {Node} */ schema) => misfits(schema, value, root, at).length === 0,
    ).length;
    if (fitting !== 1) yield `${at || "/"}: fits ${fitting} of ${schemas.length} schemas, not one`;
  },
  *not(value, schema, _schema, root, at) {
    if (misfits(schema, value, root, at).length === 0) yield `${at || "/"}: is what it must not be`;
  },
  *if(value, condition, { then = true, else: otherwise = true }, root, at) {
    yield* misfits(misfits(condition, value, root, at).length === 0 ? then : otherwise, value, root, at);
  },
  *$ref(value, target, _schema, root, at) {
    const schema = found(root, target);
    if (schema !== undefined) yield* misfits(schema, value, root, at);
  },
};

/** @type {(keyword: string) => Rule} The rule of 2020-12 for a keyword. */
const newest = (keyword) => /** @type {Rule} */ (RULES[keyword]);

/**
 * In older drafts, `items` may list the schemas of the first items. `additionalItems` describes the others.
 * @type {Record<string, Rule | undefined>}
 */
const DRAFT_2019_09 = {
  ...RULES,
  prefixItems: undefined,
  *items(value, schemas, { additionalItems = true }, root, at) {
    if (!Array.isArray(schemas)) return yield* newest("items")(value, schemas, {}, root, at);
    yield* newest("prefixItems")(value, schemas, {}, root, at);
    yield* newest("items")(value, additionalItems, { prefixItems: schemas }, root, at);
  },
};

/**
 * Here a `$ref` replaces the keywords beside it.
 * @type {Record<string, Rule | undefined>}
 */
const DRAFT_07 = {
  ...DRAFT_2019_09,
  dependentRequired: undefined,
  dependentSchemas: undefined,
  *dependencies(value, needs, schema, root, at) {
    for (const [name, needed] of Object.entries(needs)) {
      const rule = newest(Array.isArray(needed) ? "dependentRequired" : "dependentSchemas");
      yield* rule(value, { [name]: needed }, schema, root, at);
    }
  },
  *contains(value, schema, _schema, root, at) {
    yield* newest("contains")(value, schema, {}, root, at);
  },
};

/** @type {(root: any, target: string) => Node | undefined} */
function found(root, target) {
  if (target !== "#" && !target.startsWith("#/")) return undefined;
  const steps = decodeURIComponent(target).split("/").slice(1);
  return steps.reduce((part, name) => part?.[name.replaceAll("~1", "/").replaceAll("~0", "~")], root);
}

/** @type {(value: any, kind: string) => boolean} */
function is(value, kind) {
  if (kind === "null") return value === null;
  if (kind === "array") return Array.isArray(value);
  if (kind === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return kind === "integer" ? Number.isInteger(value) : typeof value === kind;
}

/** @type {(value: unknown, other: unknown) => boolean} */
function same(value, other) {
  return isDeepStrictEqual(value, other) || (value === 0 && other === 0);
}

/** @type {(value: number, of: number) => boolean} */
function isMultiple(value, of) {
  const ratio = value / of;
  return Math.abs(ratio - Math.round(ratio)) < 1e-9;
}

/** @type {(at: string, name: string | number) => string} */
const step = (at, name) => `${at}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** @type {(value: unknown) => string} */
function show(value) {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
