// Looks into JSON, changes it, and says whether it fits a schema: what models do badly by writing a document out again.

import { Failed, InvalidArguments, type Json, plugin, tool } from "@toolgate/sdk";
import * as z from "zod";
import { at, put, take } from "./src/pointer.ts";
import { compare, deep, fits, flat, same, selected, summary } from "./src/rows.ts";
import { check } from "./src/schema.ts";

const anything = z.json();
const pointer = z
  .string()
  .max(1000)
  .describe("A JSON Pointer, as /items/0/name; the empty one is the whole.");
const columns = z.record(z.string(), pointer);
const rows = z.array(anything).max(100_000);
const pure = { readOnly: true, idempotent: true } as const;

const get = tool({
  name: "json_get",
  description:
    "Takes values out of a JSON document by JSON Pointers, each under a name of its own. What is not there is null.",
  parameters: z.strictObject({
    document: anything,
    values: columns.describe("The names, and where their values are."),
  }),
  hints: pure,
  run: ({ document, values }) => selected(document, values),
});

const change = tool({
  name: "json_change",
  description:
    "Changes a JSON document step by step: set a value, remove one, or move one to another place, which also renames.",
  parameters: z.strictObject({
    document: anything,
    changes: z
      .array(
        z.union([
          z.strictObject({ set: pointer, value: anything }),
          z.strictObject({ remove: pointer }),
          z.strictObject({ move: pointer, to: pointer }),
        ]),
      )
      .min(1)
      .max(1000)
      .describe("In order. A list's end is /list/-; objects on the way are made."),
  }),
  hints: pure,
  run: ({ document, changes }) =>
    changes.reduce<Json>((whole, step) => {
      if ("set" in step) return put(whole, step.set, step.value);
      if ("remove" in step) take(whole, step.remove);
      else if (`${step.to}/`.startsWith(`${step.move}/`))
        throw new InvalidArguments(`${step.move} cannot be moved into itself`);
      else return put(whole, step.to, take(whole, step.move));
      return whole;
    }, document),
});

const table = tool({
  name: "json_rows",
  description: "Filters, sorts, selects, renames and cuts a list of JSON objects.",
  parameters: z.strictObject({
    rows,
    where: z
      .array(
        z.strictObject({
          at: pointer,
          is: z.enum(["equal", "not_equal", "less", "greater", "contains", "present", "absent"]),
          than: anything.optional().describe("The value to compare with."),
        }),
      )
      .max(20)
      .optional()
      .describe("Every condition has to hold."),
    sort: z
      .array(z.strictObject({ at: pointer, descending: z.boolean().optional() }))
      .max(5)
      .optional(),
    select: columns
      .optional()
      .describe("The columns of the result, and where in a row they are. Absent means the whole rows."),
    distinct: z.boolean().optional().describe("Each row once."),
    limit: z.int().min(0).optional(),
  }),
  result: z.array(anything),
  streaming: true,
  hints: pure,
  run({ rows, where = [], sort = [], select, distinct = false, limit }, call) {
    const kept: Json[] = [];
    for (const [index, row] of rows.entries()) {
      if (index % 10_000 === 9999) {
        call.progress(`${index + 1} of ${rows.length} rows`, (index + 1) / rows.length);
        if (call.stopRequested()) throw new Failed("the call was stopped");
      }
      if (where.every(({ at: place, is, than }) => fits(at(row, place), is, than))) kept.push(row);
    }
    const order = (a: Json, b: Json) => {
      for (const { at: place, descending } of sort) {
        const [x, y] = [at(a, place) ?? null, at(b, place) ?? null];
        const found = compare(x, y);
        // Absent values come last in both orders.
        if (found !== 0) return descending && x !== null && y !== null ? -found : found;
      }
      return 0;
    };
    const sorted = sort.length === 0 ? kept : kept.sort(order);
    const shown = select ? sorted.map((row) => selected(row, select)) : sorted;
    const once = distinct
      ? [...new Map(shown.map((row) => [JSON.stringify(Object.entries(flat(row)).sort()), row])).values()]
      : shown;
    return once.slice(0, limit);
  },
});

const group = tool({
  name: "json_group",
  description:
    "Groups a list of JSON objects by the value at a place, and sums up each group: count, sum, mean, min, max, list.",
  parameters: z.strictObject({
    rows,
    by: pointer,
    summarize: z
      .record(
        z.string(),
        z.strictObject({ at: pointer, how: z.enum(["count", "sum", "mean", "min", "max", "list"]) }),
      )
      .describe("The names of the columns, and what they sum up."),
  }),
  result: z.array(z.looseObject({ key: anything, rows: z.int() })),
  hints: pure,
  run({ rows, by, summarize }) {
    const groups = new Map<string, { key: Json; rows: Json[] }>();
    for (const row of rows) {
      const key = at(row, by) ?? null;
      const name = JSON.stringify(key);
      const found =
        groups.get(name) ??
        [...groups.values()].find((known) => typeof key === "object" && same(known.key, key));
      if (found) found.rows.push(row);
      else groups.set(name, { key, rows: [row] });
    }
    return [...groups.values()].map(({ key, rows }) => ({
      key,
      rows: rows.length,
      ...Object.fromEntries(
        Object.entries(summarize).map(([name, { at: place, how }]) => [
          name,
          summary(
            rows.map((row) => at(row, place)),
            how,
            name,
          ),
        ]),
      ),
    }));
  },
});

const flatten = tool({
  name: "json_flatten",
  description:
    "Writes a JSON document as one flat object from JSON Pointers to leaves, or makes the document of such an object again.",
  parameters: z.strictObject({
    document: anything,
    back: z.boolean().optional().describe("From the flat object to the document."),
  }),
  hints: pure,
  run({ document, back = false }) {
    if (!back) return flat(document);
    if (typeof document !== "object" || document === null || Array.isArray(document))
      throw new InvalidArguments("/document: the flat form is an object");
    return deep(document);
  },
});

const validate = tool({
  name: "json_validate",
  description:
    "Says whether a JSON document fits a JSON Schema (draft 2020-12), and everything that does not, each with its place.",
  parameters: z.strictObject({
    document: anything,
    schema: z.union([z.boolean(), z.record(z.string(), anything)]),
  }),
  result: z.object({
    valid: z.boolean(),
    problems: z.array(z.object({ at: z.string(), keyword: z.string(), message: z.string() })),
    ignored: z.array(z.string()).describe("Keywords that were not looked at."),
  }),
  hints: pure,
  run: ({ document, schema }) => check(document, schema),
});

export default plugin([get, change, table, group, flatten, validate]);
