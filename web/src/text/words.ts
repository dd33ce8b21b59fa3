// Formats times, durations, sizes and counts.

import type { Need } from "@toolgate/web";
import { shown } from "./shown";

const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** A full time in the reader's time zone. */
export function moment(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : MOMENT.format(date);
}

/** A time, without the date if it is today. */
export function shortMoment(at: string, now = new Date()): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  return date.toDateString() === now.toDateString() ? CLOCK.format(date) : MOMENT.format(date);
}

/** A span of milliseconds in its two largest units: `1 h 5 min`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1000);
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = units.findIndex(([count]) => count > 0);
  return units
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

/** Bytes: `1.5 MiB`. */
export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let [value, unit] = [count, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** `1 of 2 approvals from group:finance`. */
export function approvals({ who, quorum, votes }: Need): string {
  const from = who.length === 0 ? "" : ` from ${who.map(shown).join(" or ")}`;
  return `${votes} of ${counted(quorum, "approval")}${from}`;
}

const CHANNELS: Record<string, string> = {
  console: "in the console",
  api: "through the API",
  link: "by a link",
  "mcp-form": "in a form of an MCP client",
};

/** The channel of an answer: ` (in the console)`. Empty if it is not known. */
export function through(via: string | null | undefined): string {
  return via == null ? "" : ` (${CHANNELS[via] ?? `by a ${shown(via)}`})`;
}

/** `1 call`, `3 calls`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
