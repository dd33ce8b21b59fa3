// Lists of objects: filter, select, sort, group. Documents as flat objects, and back.

import { InvalidArguments, type Json, type JsonObject } from "@toolgate/sdk";
import { at, escaped, isObject, put } from "./pointer.ts";

export type Is = "equal" | "not_equal" | "less" | "greater" | "contains" | "present" | "absent";

/** Whether a value meets a condition. Less and greater compare two numbers or two texts. */
export function fits(value: Json | undefined, is: Is, than: Json | undefined): boolean {
  switch (is) {
    case "present":
      return value !== undefined && value !== null;
    case "absent":
      return value === undefined || value === null;
    case "equal":
      return same(value, than);
    case "not_equal":
      return !same(value, than);
    case "contains":
      if (typeof value === "string") return typeof than === "string" && value.includes(than);
      return Array.isArray(value) && value.some((entry) => same(entry, than));
    case "less":
      return comparable(value, than) && compare(value, than) < 0;
    case "greater":
      return comparable(value, than) && compare(value, than) > 0;
  }
}

/** Whether two values are equal as JSON. The order of members does not matter. */
export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((entry, index) => same(entry, b[index]));
  if (!isObject(a)) return a === b;
  if (!isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]))
  );
}

function comparable(a: Json | undefined, b: Json | undefined): boolean {
  return typeof a === typeof b && (typeof a === "number" || typeof a === "string");
}

const RANKS = ["boolean", "number", "string", "object"];

/** An order of all values: by type, then by value. Missing values come last. */
export function compare(a: Json | undefined, b: Json | undefined): number {
  const rank = (value: Json | undefined) =>
    value === undefined || value === null ? RANKS.length : RANKS.indexOf(typeof value);
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [x, y] = [a, b].map((value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")));
  return x === y ? 0 : (x ?? "") < (y ?? "") ? -1 : 1;
}

export type How = "count" | "sum" | "mean" | "min" | "max" | "list";

/** Combines the values of a group into one. Missing values are omitted. */
export function summary(values: readonly (Json | undefined)[], how: How, name: string): Json {
  const there = values.filter((value): value is Json => value !== undefined && value !== null);
  if (how === "count") return there.length;
  if (how === "list") return there;
  if (how === "min" || how === "max") {
    const sorted = there.toSorted(compare);
    return sorted.at(how === "min" ? 0 : -1) ?? null;
  }
  const numbers = there.map((value) => {
    if (typeof value === "number") return value;
    throw new InvalidArguments(`${name}: ${JSON.stringify(value)} is not a number that can be added`);
  });
  const sum = numbers.reduce((sum, number) => sum + number, 0);
  return how === "sum" ? sum : numbers.length === 0 ? null : sum / numbers.length;
}

/** A document as one object from pointers to leaves. Empty objects and lists are leaves. */
export function flat(document: Json): JsonObject {
  const leaves: JsonObject = {};
  const walk = (value: Json, pointer: string) => {
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
    if (entries.length === 0) leaves[pointer] = value;
    for (const [step, inner] of entries) walk(inner, pointer + escaped(step));
  };
  walk(document, "");
  return leaves;
}

/** The document with these leaves. An object whose members are 0, 1, 2 and so on becomes a list. */
export function deep(leaves: JsonObject): Json {
  let document: Json = {};
  for (const [pointer, value] of Object.entries(leaves)) document = put(document, pointer, value);
  return lists(document);
}

function lists(value: Json): Json {
  if (!isObject(value)) return value;
  const names = Object.keys(value);
  const inner = names.map((name) => lists(value[name] ?? null));
  if (names.length > 0 && names.every((name, index) => name === String(index))) return inner;
  return Object.fromEntries(names.map((name, index) => [name, inner[index] ?? null]));
}

/** The values of a row at several pointers, under other names. */
export function selected(row: Json, columns: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(columns).map(([name, pointer]) => [name, at(row, pointer) ?? null]),
  );
}
