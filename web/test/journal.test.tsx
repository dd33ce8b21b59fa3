// The journal of a durable call in the timeline.
import { act } from "react";
import { expect, it, vi } from "vitest";
import { Journal, Parts } from "../src/parts/journal";
import { allEntries, partsOf } from "../src/timeline/journal";
import type { TimelineCall } from "../src/timeline/timeline";
import { place, root } from "./mounted";

const callJournal = vi.fn(async () => ({ entries: [], length: 0, next: null }));
vi.mock("../src/session", () => ({ useSession: () => ({ host: { toolgate: { callJournal } } }) }));

const entry = (number: number, more: object = {}) => ({
  number,
  after_step: 0,
  run: 1,
  at: "2026-11-22T05:00:00Z",
  function: "key-value get",
  state: "done" as const,
  bytes: 12,
  ...more,
});

const POST = { function: "http POST https://api.example.com/\u202e", after_step: 1, run: 2 };
const ENTRIES = [
  entry(0, { function: "configuration" }),
  entry(1, { ...POST, state: "begun", bytes: undefined }),
  entry(2, POST),
  entry(3, { ...POST, state: "begun", bytes: undefined }),
];

it("shows a begun request and its result as one effect", () => {
  const parts = partsOf(ENTRIES);
  expect(parts.map(({ after }) => after)).toEqual([0, 1]);
  expect(parts[1]?.effects.map(({ number, state }) => [number, state])).toEqual([
    [2, "done"],
    [3, "begun"],
  ]);
});

it("shows what a call did after each of its steps", async () => {
  await act(async () => root.render(<Parts parts={partsOf(ENTRIES)} missing={2} />));
  expect([...place.querySelectorAll("h5")].map((heading) => heading.textContent)).toEqual([
    "From the beginning",
    "After step 1",
  ]);
  const lines = [...place.querySelectorAll("li")].map(({ textContent }) => textContent);
  expect(lines[0]).toMatch(/^0run 1configuration 12 B /);
  expect(lines[1]).toMatch(/^2run 2http POST https:\/\/api\.example\.com\/\\u\{202e\} 12 B /);
  expect(lines[2]).toContain("begun, without a result");
  expect(place.textContent).toContain("2 more entries");
});

it("says that a call has recorded nothing", async () => {
  await act(async () => root.render(<Parts parts={[]} missing={0} />));
  expect(place.textContent).toBe("This call has recorded nothing.");
});

it("reads all pages of a journal, up to a bound", async () => {
  const read: (number | undefined)[] = [];
  const page = async (after?: number) => {
    read.push(after);
    const number = (after ?? -1) + 1;
    const shared = { turn: "t", call: "c", status: "running" as const, length: 5 };
    return { ...shared, entries: [entry(number)], next: number < 4 ? number : null };
  };
  expect((await allEntries(page)).entries.map(({ number }) => number)).toEqual([0, 1, 2, 3, 4]);
  expect(read).toEqual([undefined, 0, 1, 2, 3]);
  expect(await allEntries(page, 2)).toMatchObject({ entries: [{ number: 0 }, { number: 1 }], length: 5 });
});

it("reads the journal again while the call runs", async () => {
  vi.useFakeTimers();
  const show = (state: string) => {
    const call = { id: "c", state, attempt: 1, waits: [] } as unknown as TimelineCall;
    return act(async () => root.render(<Journal conversation="c" call={call} />));
  };
  const passes = () => act(async () => vi.advanceTimersByTime(3_000));
  await show("running");
  await passes();
  await passes();
  expect(callJournal).toHaveBeenCalledTimes(3);
  await show("awaiting");
  await passes();
  expect(callJournal).toHaveBeenCalledTimes(4);
  vi.useRealTimers();
});
