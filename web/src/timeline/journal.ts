// The journal of a durable call: what it did between its steps.

import type { CallJournal, JournalEntry } from "@toolgate/web";

/** A host function that the call called. */
export interface Effect {
  number: number;
  run?: number;
  at: string;
  function?: string;
  /** Begun without an end: nobody knows whether it happened. */
  state: JournalEntry["state"];
  bytes?: number;
}

/** The part of a journal between two steps. */
export interface Part {
  /** The step that it follows. 0: the beginning of the call. */
  after: number;
  effects: Effect[];
}

/** The parts of a journal. The two entries of an effect, its begin and its end, are one effect. */
export function partsOf(entries: readonly JournalEntry[]): Part[] {
  const parts: Part[] = [];
  let begun: JournalEntry | undefined;
  for (const entry of entries) {
    let part = parts.at(-1);
    if (part?.after !== entry.after_step) {
      part = { after: entry.after_step, effects: [] };
      parts.push(part);
    }
    // The end of an effect follows its begin.
    if (begun !== undefined && begun.number === entry.number - 1 && entry.state !== "begun")
      part.effects.pop();
    begun = entry.state === "begun" ? entry : undefined;
    part.effects.push(effectOf(entry));
  }
  return parts;
}

function effectOf({ number, run, at, function: name, state, bytes }: JournalEntry): Effect {
  return {
    number,
    ...(run != null && { run }),
    at,
    ...(name != null && { function: name }),
    state,
    ...(bytes != null && { bytes }),
  };
}

/** The entries of all pages, at most about `max`. */
export async function allEntries(
  page: (after?: number) => Promise<CallJournal>,
  max = 2000,
): Promise<{ entries: JournalEntry[]; length: number }> {
  let { entries, length, next } = await page();
  while (next != null && entries.length < max) {
    const more = await page(next);
    entries = [...entries, ...more.entries];
    ({ length, next } = more);
  }
  return { entries, length };
}
