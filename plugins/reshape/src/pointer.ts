// JSON Pointers (RFC 6901), and changes of a document with them.

import { InvalidArguments, type Json, type JsonObject } from "@toolgate/sdk";

/** The steps of a pointer: `/a/b~1c` is `a`, `b/c`. */
export function stepsOf(pointer: string): string[] {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) {
    throw new InvalidArguments(
      `${JSON.stringify(pointer)} is not a JSON Pointer: it is empty, or begins with /, and ~ is written ~0`,
    );
  }
  return pointer
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Escapes a step for a pointer. */
export const escaped = (step: string | number) =>
  `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`;

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at a pointer, or `undefined`. */
export function at(document: Json, pointer: string): Json | undefined {
  let value: Json | undefined = document;
  for (const step of stepsOf(pointer)) value = member(value, step);
  return value;
}

function member(value: Json | undefined, step: string): Json | undefined {
  if (Array.isArray(value)) return /^(0|[1-9]\d*)$/.test(step) ? value[Number(step)] : undefined;
  return isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}

/** Sets the value at a pointer. Missing objects on the way are created; `-` is the end of a list. */
export function put(document: Json, pointer: string, value: Json): Json {
  const steps = stepsOf(pointer);
  const last = steps.pop();
  if (last === undefined) return value;
  let parent = document;
  for (const step of steps) {
    let next = member(parent, step);
    if (next === undefined) {
      next = {};
      assign(parent, step, next, pointer);
    }
    parent = next;
  }
  assign(parent, last, value, pointer);
  return document;
}

function assign(parent: Json, step: string, value: Json, pointer: string): void {
  if (Array.isArray(parent)) {
    const index = step === "-" ? parent.length : /^(0|[1-9]\d*)$/.test(step) ? Number(step) : Number.NaN;
    if (!(index <= parent.length))
      throw new InvalidArguments(
        `${pointer}: the list has no place ${step}; it has ${parent.length} entries`,
      );
    parent[index] = value;
  } else if (isObject(parent)) {
    // Defines an own member even if its name is inherited, such as `__proto__`.
    Object.defineProperty(parent, step, { value, writable: true, enumerable: true, configurable: true });
  } else {
    throw new InvalidArguments(`${pointer}: ${JSON.stringify(parent)} has no members`);
  }
}

/** Removes the value at a pointer and returns it. */
export function take(document: Json, pointer: string): Json {
  const steps = stepsOf(pointer);
  const last = steps.pop();
  if (last === undefined) throw new InvalidArguments("the whole document cannot be removed");
  const parent = at(document, steps.map(escaped).join(""));
  const value = member(parent, last);
  if (value === undefined) throw new InvalidArguments(`${pointer}: there is no value`);
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else if (isObject(parent)) delete parent[last];
  return value;
}
