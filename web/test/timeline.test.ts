import type { FeedEvent } from "@toolgate/web";
import { describe, expect, it } from "vitest";
import { type Timeline, withEvent } from "../src/timeline/timeline";

const after = (...events: FeedEvent[]): Timeline => events.reduce<Timeline>(withEvent, []);
const of = (event: FeedEvent["event"], more: Record<string, unknown> = {}): FeedEvent => ({
  event,
  at: "2026-11-22T05:00:00Z",
  turn: "t",
  call: "c",
  ...more,
});

const BEGUN = [
  of("turn.started", { conversation: "demo", caller: "agent" }),
  of("call.requested", {
    tool: "pay",
    arguments: { amount: 5 },
    executor: "server",
    approval: "requires-approval",
  }),
];
const ASKED = of("call.suspended", {
  suspension: "s",
  kind: "approval",
  prompt: "Pay?",
  created_at: "a",
  expires_at: "b",
});
const SETTLED = of("call.settled", { outcome: "ok", content: { ok: true, result: 1 } });

function onlyCall(timeline: Timeline) {
  const call = timeline[0]?.calls[0];
  if (call === undefined) throw new Error("there is no call");
  return call;
}

describe("a durable call", () => {
  it("shows its steps and runs again", () => {
    const asked = { ...ASKED, step: 1, arguments: { plan: "blue" } };
    const answered = of("call.resolved", {
      suspension: "s",
      decision: "approve",
      by: "ann",
      arguments: { plan: "green" },
    });
    const call = onlyCall(after(...BEGUN, asked, answered, of("call.resumed", { attempt: 1 })));
    expect(call.waits[0]).toMatchObject({
      step: 1,
      asked: { plan: "blue" },
      end: { arguments: { plan: "green" } },
      resumed: { run: 2, at: "2026-11-22T05:00:00Z" },
    });
    expect(call).toMatchObject({ state: "running", arguments: { amount: 5 } });
    expect(call.submitted).toBeUndefined();
  });

  it("goes on after each of its steps", () => {
    const steps = ["s1", "s2"].flatMap((suspension, index) => [
      { ...ASKED, suspension, step: index + 1 },
      of("call.resolved", { suspension, decision: "approve", by: "ann" }),
      of("call.resumed", { attempt: 1 }),
    ]);
    const gate = [ASKED, of("call.resolved", { suspension: "s", decision: "approve", by: "ann" })];
    const call = onlyCall(after(...BEGUN, ...gate, of("call.started", { attempt: 1 }), ...steps));
    expect(call.waits.map(({ resumed }) => resumed?.run)).toEqual([undefined, 2, 3]);
  });

  it("names its nested turn, and a nested turn its parent", () => {
    const nested = { conversation: "~demo", turn: "n", tools: ["note", "pay"], open: true };
    const waits = { ...ASKED, kind: "children", step: 1, nested };
    expect(onlyCall(after(...BEGUN, waits)).waits[0]?.nested).toEqual(nested);
    const parent = { conversation: "demo", turn: "t", call: "c", plugin: "p", tool: "run", depth: 1 };
    const started = of("turn.started", { turn: "n", conversation: "~demo", caller: "agent", parent });
    expect(after(started)[0]?.parent).toEqual(parent);
    expect(after(...BEGUN)[0]?.parent).toBeUndefined();
  });

  it("shows what an external system sent", () => {
    const waits = { ...ASKED, kind: "external", step: 1, signal: "health", prompt: "The health" };
    const sent = of("call.resolved", {
      suspension: "s",
      decision: "result",
      by: "bob",
      data: { healthy: true },
    });
    const call = onlyCall(after(...BEGUN, waits, sent));
    expect(call.waits[0]).toMatchObject({
      kind: "external",
      signal: "health",
      prompt: "The health",
      end: { state: "result", data: { healthy: true } },
    });
  });
});

describe("a call", () => {
  it.each([
    ["requested", BEGUN],
    ["awaiting", [...BEGUN, ASKED]],
    [
      "requested",
      [...BEGUN, ASKED, of("call.resolved", { suspension: "s", by: "bob", decision: "approve" })],
    ],
    ["running", [...BEGUN, of("call.started", { attempt: 2 })]],
    ["settled", [...BEGUN, of("call.started", { attempt: 1 }), SETTLED]],
  ])("is %s", (state, events) => {
    expect(onlyCall(after(...events)).state).toBe(state);
  });

  it("shows progress only while it runs", () => {
    const running = [
      ...BEGUN,
      of("call.started", { attempt: 1 }),
      of("call.progress", { message: "half", fraction: 0.5 }),
    ];
    expect(onlyCall(after(...running)).progress).toEqual({ message: "half", fraction: 0.5 });
    expect(onlyCall(after(...running, SETTLED)).progress).toBeUndefined();
  });

  it("keeps the submitted arguments after an edit", () => {
    const answer = of("call.resolved", {
      suspension: "s",
      by: "bob",
      via: "link",
      decision: "approve",
      arguments: { amount: 4 },
    });
    const call = onlyCall(after(...BEGUN, ASKED, answer));
    expect([call.arguments, call.submitted]).toEqual([{ amount: 4 }, { amount: 5 }]);
    expect(call.waits[0]?.end).toMatchObject({ by: "bob", via: "link", arguments: { amount: 4 } });
  });

  it("compares each edit with the arguments that were asked about", () => {
    const answer = (suspension: string, amount: number) =>
      of("call.resolved", { suspension, by: "bob", decision: "approve", arguments: { amount } });
    const again = { ...ASKED, suspension: "s2" };
    const call = onlyCall(after(...BEGUN, ASKED, answer("s", 4), again, answer("s2", 3)));
    expect(call.waits.map(({ asked, end }) => [asked, end?.arguments])).toEqual([
      [{ amount: 5 }, { amount: 4 }],
      [{ amount: 4 }, { amount: 3 }],
    ]);
    expect([call.submitted, call.arguments]).toEqual([{ amount: 5 }, { amount: 3 }]);
  });

  it("keeps the last lines of a log", () => {
    const lines = Array.from({ length: 250 }, (_, line) =>
      of("call.log", { run: 1, line: line + 1, level: "info", message: `${line}` }),
    );
    const { log } = onlyCall(after(...BEGUN, ...lines));
    expect([log.length, log[0]]).toEqual([200, { run: 1, line: 51, level: "info", message: "50" }]);
  });
});

describe("a question", () => {
  const wait = (...events: FeedEvent[]) => onlyCall(after(...BEGUN, ASKED, ...events)).waits[0];

  it("lists the actions before it ended", () => {
    const shown = wait(
      of("call.voted", {
        suspension: "s",
        by: "alice",
        via: "link",
        comment: "fine",
        arguments: { amount: 4 },
      }),
      of("suspension.delegated", { suspension: "s", from: "bob", to: "carol" }),
      of("suspension.escalated", { suspension: "s", to: ["role:admin", "group:finance"] }),
    );
    expect(shown?.steps.map(({ what, by, to }) => [what, by, to])).toEqual([
      ["voted", "alice", undefined],
      ["delegated", "bob", "carol"],
      ["escalated", "system", "role:admin, group:finance"],
    ]);
    expect(shown?.steps[0]).toMatchObject({ via: "link", comment: "fine", arguments: { amount: 4 } });
    expect(shown?.end).toBeUndefined();
  });

  it("counts the votes that are added up at each of them", () => {
    const who = (name: string, quorum: number) => ({ who: [name], quorum, votes: 0, escalated: false });
    const asked = { ...ASKED, suspension: "p", needs: [who("group:a", 3), who("group:b", 1)] };
    const vote = (by: string, binding: string, needs: number[]) =>
      of("call.voted", { suspension: "p", by, binding, needs });
    const { waits } = onlyCall(
      after(
        ...BEGUN,
        asked,
        vote("ann", "x", [0]),
        vote("bob", "y", [0]),
        vote("bob", "x", [0, 1]),
        vote("dan", "y", [0]),
        of("suspension.authority_revoked", { suspension: "p", principal: "ann" }),
        vote("cy", "x", [0]),
      ),
    );
    const votes = waits[0]?.steps.map(({ by, needs }) => [by, ...(needs?.map((need) => need.votes) ?? [])]);
    expect(votes).toEqual([
      ["ann", 1, 0],
      ["bob", 1, 0],
      ["bob", 2, 1],
      ["dan", 1, 0],
      ["system"],
      ["cy", 2, 1],
    ]);
  });

  it.each([
    ["deny", "bob", of("call.resolved", { suspension: "s", by: "bob", decision: "deny" })],
    ["expired", "system", of("suspension.expired", { suspension: "s" })],
    ["withdrawn", "system", SETTLED],
  ])("ends %s", (state, by, event) => {
    expect(wait(event)?.end).toMatchObject({ state, by });
  });

  it("ends once, and later events do not change by whom", () => {
    const shown = wait(
      of("call.resolved", { suspension: "s", by: "bob", decision: "deny" }),
      of("suspension.expired", { suspension: "s" }),
      SETTLED,
    );
    expect(shown?.end).toMatchObject({ state: "deny", by: "bob" });
  });
});

describe("a damaged record", () => {
  const DAMAGED = of("record.unreadable");

  it("is counted in its turn", () => {
    const timeline = after(...BEGUN, DAMAGED, DAMAGED, SETTLED);
    expect(timeline).toMatchObject([
      { id: "t", caller: "agent", unreadable: 2, calls: [{ state: "settled" }] },
    ]);
  });

  it("shows a turn whose start is missing", () => {
    const other = of("turn.started", { turn: "u", caller: "agent" });
    const timeline = after(DAMAGED, other, DAMAGED, of("turn.settled", { state: "settled" }));
    expect(timeline.map(({ id, state, unreadable }) => [id, state, unreadable])).toEqual([
      ["t", "settled", 2],
      ["u", "open", 0],
    ]);
  });
});

describe("a stream", () => {
  it("may repeat events", () => {
    const events = [...BEGUN, ASKED];
    expect(after(...events, ...events)).toEqual(after(...events));
  });

  it("ignores turns without a start, and unknown events", () => {
    expect(after(SETTLED, of("turn.settled", { state: "settled" }))).toEqual([]);
    expect(after(...BEGUN, of("call.something-new" as FeedEvent["event"]))).toEqual(after(...BEGUN));
  });

  it("does not modify earlier states", () => {
    const before = after(...BEGUN);
    const kept = structuredClone(before);
    withEvent(withEvent(before, ASKED), SETTLED);
    expect(before).toEqual(kept);
  });
});
