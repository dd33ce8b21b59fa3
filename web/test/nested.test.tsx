// The nested turns of a call in the timeline.
import type { Turn as TurnJson } from "@toolgate/web";
import { act } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Turn } from "../src/parts/turn";
import { callsOf, type TimelineTurn } from "../src/timeline/timeline";
import { place, root } from "./mounted";

/** The turns of the host, by their ids. */
let turns: Record<string, TurnJson> = {};
const get = vi.fn(async (path: string) => {
  const turn = turns[path.replace("/v1/conversations/~demo/turns/", "")];
  if (turn === undefined) throw new Error("there is no such turn");
  return turn;
});
vi.mock("../src/session", () => ({ useSession: () => ({ host: { get } }) }));

const HOSTILE = '<img src=x onerror="alert(1)">\u202E';

const turnOf = (calls: object[], more: object = {}) =>
  ({ state: "open", calls, pending: [], ...more }) as unknown as TurnJson;
const call = (id: string, more: object = {}) => ({
  id,
  tool: id,
  arguments: {},
  status: "running",
  outcome: null,
  content: null,
  attempt: 1,
  ...more,
});
const OK = { status: "resolved", outcome: "ok", content: { ok: true, result: { text: HOSTILE } } };
const ERROR = { code: "failed", message: `no\n${HOSTILE}` };
const FAILED = { status: "errored", outcome: "failed", content: { ok: false, error: ERROR } };
const nestedIn = (turn: string, open = true) => ({ conversation: "~demo", turn, tools: ["a", "b"], open });
const suspension = (call: string, more: object) => ({
  suspension: `s-${call}`,
  call,
  kind: "approval",
  arguments: {},
  needs: [],
  created_at: "2026-11-22T05:00:00Z",
  expires_at: "2026-11-23T05:00:00Z",
  ...more,
});

/** A turn of the timeline whose call waits for the nested turn `n`, or no longer. */
function waiting(end?: { state: string; by: string }): TimelineTurn {
  const wait = { suspension: "s", kind: "children", step: 1, asked: null, openedAt: "", expiresAt: "" };
  const waits = [
    { ...wait, nested: nestedIn("n"), needs: [], votes: [], steps: [], ...(end ? { end } : {}) },
  ];
  const base = { tool: "run", arguments: {}, gated: false, attempt: 1, log: [], waits };
  return {
    id: "t",
    caller: "agent",
    state: "open",
    unreadable: 0,
    calls: [{ ...base, id: "c", state: end ? "running" : "awaiting" }],
  };
}

const show = (turn = waiting()) => act(async () => root.render(<Turn conversation="demo" turn={turn} />));
const folds = () =>
  [...place.querySelectorAll<HTMLElement>(".fold-button")].filter(({ textContent }) =>
    textContent?.includes("nested call"),
  );
const press = (button: HTMLElement | undefined) => act(async () => button?.click());
const passes = () => act(async () => vi.advanceTimersByTime(3_000));
/** The calls below the call of the timeline: their levels, names and states. */
const tree = () =>
  [...place.querySelectorAll(".call .call")].map((item) => {
    const title = item.querySelector(":is(h3, h4, h5, h6)");
    return [title?.tagName, title?.textContent, item.querySelector(".call-state")?.textContent];
  });

beforeEach(() => {
  vi.useFakeTimers();
  get.mockClear();
  turns = {};
});
afterEach(() => vi.useRealTimers());

it("reads the calls of a turn with states and suspensions", () => {
  const gated = { approval: "requires-approval", status: "awaiting", attempt: 0 };
  const asks = suspension("asks", { prompt: "Pay?", kind: "approval" });
  const goes = suspension("runs", { kind: "children", step: 2, nested: nestedIn("n2"), arguments: null });
  const edited = { arguments: { amount: 4 }, submitted: { amount: 5 } };
  const calls = [
    call("asks", gated),
    call("runs", { status: "awaiting", nested: [nestedIn("n1", false), nestedIn("n2")] }),
    call("new", { attempt: 0 }),
    call("now"),
    call("ok", { ...OK, ...edited, trusted: false }),
    call("no", FAILED),
  ];
  const read = callsOf(turnOf(calls, { pending: [asks, goes] }));
  expect(read.map(({ id, state, outcome }) => [id, state, outcome])).toEqual([
    ["asks", "awaiting", undefined],
    ["runs", "awaiting", undefined],
    ["new", "requested", undefined],
    ["now", "running", undefined],
    ["ok", "settled", "ok"],
    ["no", "settled", "failed"],
  ]);
  expect(read[0]).toMatchObject({ gated: true, waits: [{ prompt: "Pay?", suspension: "s-asks" }] });
  expect(read[1]?.nested?.map(({ turn, open }) => [turn, open])).toEqual([
    ["n1", false],
    ["n2", true],
  ]);
  expect(read[1]?.waits).toMatchObject([{ kind: "children", step: 2 }]);
  expect(read[1]?.waits[0]?.nested).toBeUndefined();
  expect(read[4]).toMatchObject({ ...edited, trusted: false, content: OK.content });
});

it("shows the calls of a nested turn when somebody opens it", async () => {
  const asks = suspension("pay", { prompt: HOSTILE });
  const calls = [
    call("note", OK),
    call("pay", { status: "awaiting" }),
    call(HOSTILE, FAILED),
    call("run", { ...OK, nested: [nestedIn("deeper", false)] }),
  ];
  turns = {
    n: turnOf(calls, { pending: [asks] }),
    deeper: turnOf([call("last", OK)], { state: "settled" }),
  };
  await show();
  expect(get).not.toHaveBeenCalled();
  expect(place.querySelector(".wait a[href='/conversations/~demo#n']")).not.toBeNull();

  expect(folds().map(({ textContent }) => textContent)).toEqual(["2 nested calls"]);
  await press(folds()[0]);
  expect(folds()[0]?.getAttribute("aria-expanded")).toBe("true");
  const hostile = '<img src=x onerror="alert(1)">\\u{202e}';
  const first = [
    ["H5", "note", "ok"],
    ["H5", "pay", "waiting"],
    ["H5", hostile, "failed"],
    ["H5", "run", "ok"],
  ];
  expect(tree()).toEqual(first);
  const items = [...place.querySelectorAll(".call .call")];
  expect(items[0]?.querySelector('[aria-label="Result"]')?.textContent).toContain(`"<img`);
  expect(items[1]?.querySelector("a[href='/suspensions/s-pay']")?.textContent).toBe("Answer");
  expect(items[1]?.querySelector("blockquote")?.textContent).toBe(hostile);
  expect(items[2]?.querySelector(".result-error")?.textContent).toBe(`failed no\n${hostile}`);

  await press(folds()[1]);
  expect(tree()).toEqual([...first, ["H6", "last", "ok"]]);
  expect(place.querySelector("img")).toBeNull();
  expect(place.outerHTML).not.toContain("\u202E");
});

it("shows that it loads, and why it cannot", async () => {
  await show();
  act(() => folds()[0]?.click());
  expect(place.querySelectorAll(".wait .skeleton-row")).toHaveLength(2);
  await act(async () => {});
  expect(place.querySelector('.wait [role="alert"] p')?.textContent).toBe("there is no such turn");
  turns = { n: turnOf([call("note", OK)]) };
  await press(place.querySelector<HTMLElement>('.wait [role="alert"] button') ?? undefined);
  expect(place.querySelector('[role="alert"]')).toBeNull();
  expect(tree()).toEqual([["H5", "note", "ok"]]);
});

it("shows four levels, and then only a link", async () => {
  turns = { n: turnOf([call("a", { nested: [nestedIn("n", false)] })]) };
  await show();
  for (let level = 0; level < 4; level += 1) await press(folds()[level]);
  expect(tree().map(([title]) => title)).toEqual(["H5", "H6", "H6", "H6"]);
  expect(folds()).toHaveLength(4);
  expect(place.querySelectorAll("a[href='/conversations/~demo#n']")).toHaveLength(5);
});

it("reads an open tree again until the nested turn has ended", async () => {
  turns = { n: turnOf([call("note")]) };
  await show();
  await press(folds()[0]);
  await passes();
  expect(get).toHaveBeenCalledTimes(2);
  await show(waiting({ state: "expired", by: "system" }));
  expect(get).toHaveBeenCalledTimes(3);
  expect(tree()).toEqual([["H5", "note", "running"]]);
  turns = { n: turnOf([call("note", OK)], { state: "settled" }) };
  await passes();
  expect(tree()).toEqual([["H5", "note", "ok"]]);
  await passes();
  expect(get).toHaveBeenCalledTimes(4);
});

it("reads nothing while the tree is closed or the page is hidden", async () => {
  turns = { n: turnOf([call("note")]) };
  await show();
  await press(folds()[0]);
  const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  await passes();
  expect(get).toHaveBeenCalledTimes(1);
  hidden.mockReturnValue(false);
  await passes();
  expect(get).toHaveBeenCalledTimes(2);
  await press(folds()[0]);
  expect(folds()[0]?.getAttribute("aria-expanded")).toBe("false");
  await passes();
  expect(get).toHaveBeenCalledTimes(2);
});
