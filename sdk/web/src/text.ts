/**
 * Text of strangers as people are shown it. The host's `display` members are escaped already; this is for the rest: events,
 * titles, comments, names. What could hide, turn around, forge a line or pass for other letters is written out as `\u{…}`.
 */
import { serialize } from "./json-text.js";
import { withoutLookalikes } from "./lookalikes.js";

/** Controls, formats, what is invisible or not assigned; spaces that are none; floods of marks, and marks without a letter. */
const DECEIVES =
  /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u115f\u1160\u2800\u3164\uffa0]|\p{M}{5,}|(?<=^|[\s\p{P}])\p{M}+/gu;

const written = (some: string) =>
  Array.from(some, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`).join("");

/** A text for one line. */
export function line(text: string): string {
  return withoutLookalikes(text, written).replace(DECEIVES, (c) => (c === "\n" ? "\\n" : written(c)));
}

/** A text of several lines. */
export function lines(text: string): string {
  return withoutLookalikes(text.replaceAll("\r\n", "\n"), written).replace(DECEIVES, (c) =>
    c === "\n" ? c : written(c),
  );
}

/** A value as JSON in which what deceives is written as `\uXXXX`: for what comes without a `display`. A `RawJson` in it stays. */
export function json(value: unknown): string {
  const units = (some: string) =>
    Array.from({ length: some.length }, (_, i) => `\\u${hex(some.charCodeAt(i))}`).join("");
  return withoutLookalikes(serialize(value), units).replace(DECEIVES, units);
}

function hex(unit: number): string {
  return unit.toString(16).padStart(4, "0");
}

/** `principal:alice` as “alice”, `group:finance` as “group finance”. */
export function who(name: string): string {
  const [kind, ...rest] = name.split(":");
  if (rest.length === 0) return line(name);
  return kind === "principal" ? line(rest.join(":")) : `${kind} ${line(rest.join(":"))}`;
}

/** A span of time: “2 d 3 h”, “4 min 05 s”. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m, s] = [seconds / 86400, (seconds / 3600) % 24, (seconds / 60) % 60, seconds % 60].map(
    Math.floor,
  ) as [number, number, number, number];
  if (d > 0) return `${d} d ${h} h`;
  if (h > 0) return `${h} h ${m} min`;
  return m > 0 ? `${m} min ${String(s).padStart(2, "0")} s` : `${s} s`;
}

/** A moment as the reader's place writes it. */
export function clockTime(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return line(at);
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
