// The log of a call: the lines that the host keeps, and the lines that arrived since they were read.

import type { CallLog, LogLevel } from "@toolgate/web";

/** A line that arrived while the call runs. */
export interface LiveLine {
  run: number;
  /** Its number among the lines of the run, from 1. */
  line: number;
  level: LogLevel;
  message: string;
}

export interface Line extends Omit<LiveLine, "run"> {
  at?: string;
  /** The number of lines before this one that are not shown. */
  missing: number;
}

export interface Run {
  run: number;
  lines: Line[];
  /** The number of lines that are not kept, if there is no line after them. */
  missing: number;
}

/** The lines of each run in order, each line once. */
export function runsOf(kept: CallLog["runs"], live: readonly LiveLine[]): Run[] {
  const runs = new Map<number, { leftOut: number; lines: Map<number, Omit<Line, "missing">> }>();
  for (const { run, left_out, lines } of kept) {
    runs.set(run, { leftOut: left_out, lines: new Map(lines.map((line) => [line.line, line])) });
  }
  for (const { run, ...line } of live) {
    const known = runs.get(run) ?? { leftOut: 0, lines: new Map() };
    runs.set(run, known);
    if (!known.lines.has(line.line)) known.lines.set(line.line, line);
  }
  return [...runs]
    .sort(([a], [b]) => a - b)
    .map(([run, { leftOut, lines }]) => {
      const ordered = [...lines.values()].sort((a, b) => a.line - b.line);
      return {
        run,
        lines: ordered.map((line, at) => ({
          ...line,
          missing: line.line - 1 - (ordered[at - 1]?.line ?? 0),
        })),
        missing: ordered.length === 0 ? leftOut : 0,
      };
    });
}
