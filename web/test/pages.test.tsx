import { act } from "react";
import { describe, expect, it, vi } from "vitest";
import { Runs } from "../src/parts/call-log";
import { JsonTree } from "../src/parts/json-tree";
import { Turn } from "../src/parts/turn";
import { Boundary } from "../src/shell/boundary";
import { runsOf } from "../src/timeline/log";
import type { TimelineCall, TimelineTurn, Wait } from "../src/timeline/timeline";
import { place, root } from "./mounted";

const HOSTILE = '<img src=x onerror="alert(1)">\u202E';

// A sleep in a durable call.
const WAIT: Wait = {
  suspension: "s",
  kind: "timer",
  step: 1,
  asked: null,
  openedAt: "",
  expiresAt: "",
  needs: [],
  votes: [],
  steps: [],
};

describe("untrusted text", () => {
  it("is text in a tree, keys included", async () => {
    await act(() => root.render(<JsonTree value={{ [HOSTILE]: HOSTILE, list: [HOSTILE] }} label="Result" />));
    expect(place.querySelector("img")).toBeNull();
    expect(place.textContent).toContain("<img src=x");
    expect(place.textContent).not.toContain("\u202E");
  });

  it("is text in a timeline", async () => {
    const turn: TimelineTurn = {
      id: "t",
      caller: HOSTILE,
      state: "open",
      unreadable: 0,
      calls: [
        {
          id: "c",
          tool: HOSTILE,
          arguments: { a: HOSTILE },
          gated: true,
          plugin: HOSTILE,
          state: "running",
          attempt: 1,
          progress: { message: HOSTILE, fraction: 0.5 },
          log: [{ run: 1, line: 1, level: "info", message: HOSTILE }],
          waits: [
            {
              suspension: "s",
              kind: "approval",
              prompt: HOSTILE,
              asked: { a: HOSTILE },
              openedAt: "",
              expiresAt: "",
              needs: [],
              votes: [],
              steps: [
                {
                  what: "voted",
                  by: HOSTILE,
                  via: HOSTILE,
                  comment: HOSTILE,
                  arguments: [HOSTILE],
                  needs: [{ who: [HOSTILE], quorum: 2, votes: 1, escalated: false }],
                },
              ],
              end: { state: "deny", by: HOSTILE, via: HOSTILE, comment: HOSTILE },
            },
          ],
          content: { ok: false, error: { code: "failed", message: HOSTILE } },
        },
      ],
    };
    await act(() => root.render(<Turn conversation="demo" turn={turn} />));
    expect(place.querySelector("img")).toBeNull();
    expect(place.outerHTML).not.toContain("\u202E");
    expect(place.querySelector('[role="progressbar"]')?.getAttribute("aria-valuenow")).toBe("50");
  });
});

describe("a timeline", () => {
  it("shows edits, their changes, and votes by link", async () => {
    const call: TimelineCall = {
      id: "c",
      tool: "pay",
      arguments: { amount: 4 },
      submitted: { to: "bob", amount: 5 },
      gated: true,
      state: "settled",
      attempt: 1,
      log: [],
      waits: [
        {
          suspension: "s",
          kind: "approval",
          asked: { to: "bob", amount: 5 },
          openedAt: "",
          expiresAt: "",
          needs: [],
          votes: [],
          steps: [
            {
              what: "voted",
              by: "ann",
              via: "link",
              arguments: { to: "bob", amount: 4 },
              needs: [{ who: ["group:finance"], quorum: 2, votes: 1, escalated: false }],
            },
          ],
          end: { state: "approve", by: "carol", via: "console" },
        },
      ],
    };
    const turn: TimelineTurn = { id: "t", caller: "agent", state: "settled", unreadable: 0, calls: [call] };
    await act(() => root.render(<Turn conversation="demo" turn={turn} />));
    const steps = [...place.querySelectorAll(".steps > li")].map(({ textContent }) => textContent);
    expect(steps[0]).toMatch(
      /^ann \(by a link\) approved with edited arguments, 1 of 2 approvals from group:finance: the call still waits/,
    );
    expect(steps[1]).toMatch(/^approve by carol \(in the console\)/);
    const edit = place.querySelector('[aria-label="Changes by ann"]');
    expect([...(edit?.children ?? [])].map(({ textContent }) => textContent)).toEqual([
      "  {",
      '    "to": "bob",',
      '− removed:   "amount": 5',
      '+ added:   "amount": 4',
      "  }",
    ]);
    expect(steps[1]).not.toContain("edited");
  });

  it("links a call and its nested turn to each other", async () => {
    const wait: Wait = {
      ...WAIT,
      kind: "children",
      nested: { conversation: "~demo", turn: "n", tools: ["note", HOSTILE, "note"], open: true },
    };
    const call: TimelineCall = {
      id: "c",
      tool: "run",
      arguments: {},
      gated: false,
      state: "awaiting",
      attempt: 1,
      log: [],
      waits: [wait],
    };
    const parent = { conversation: "demo", turn: "t", call: "c", plugin: "p", tool: "run", depth: 1 };
    const turn: TimelineTurn = { id: "t", caller: "agent", state: "open", unreadable: 0, calls: [call] };
    const nested: TimelineTurn = { ...turn, id: "n", parent, calls: [] };
    await act(() =>
      root.render(
        <>
          <Turn conversation="demo" turn={turn} />
          <Turn conversation="~demo" turn={nested} />
        </>,
      ),
    );
    const below = place.querySelector(".wait a[href='/conversations/~demo#n']")?.parentElement?.textContent;
    expect(below).toMatch(/^Calls note and <img .* in n$/);
    const above = place.querySelector("#n a[href='/conversations/demo#t']")?.parentElement?.textContent;
    expect(above).toBe("Called by run of the plugin p, which chose the tools and the arguments, in t");
  });

  it("says which calls run outside the sandbox", async () => {
    const call = { tool: "t", arguments: {}, gated: false, state: "running", attempt: 1, log: [], waits: [] };
    const of = (id: string, plugin: string) => ({ ...call, id, plugin }) as TimelineCall;
    const calls = [of("a", "mcp:github"), of("b", "mcp")];
    const turn: TimelineTurn = { id: "t", caller: "agent", state: "open", unreadable: 0, calls };
    await act(() => root.render(<Turn conversation="demo" turn={turn} />));
    const outside = [...place.querySelectorAll(".call")].map((call) =>
      call.querySelector(".call-state")?.textContent?.includes("outside the sandbox"),
    );
    expect(outside).toEqual([true, false]);
  });

  it("shows where a durable call goes on", async () => {
    const wait: Wait = {
      ...WAIT,
      end: { state: "expired", by: "system" },
      resumed: { run: 2 },
    };
    const call: TimelineCall = {
      id: "c",
      tool: "roll_out",
      arguments: {},
      gated: false,
      state: "running",
      attempt: 1,
      log: [],
      waits: [wait],
    };
    const turn: TimelineTurn = { id: "t", caller: "agent", state: "open", unreadable: 0, calls: [call] };
    await act(() => root.render(<Turn conversation="demo" turn={turn} />));
    const steps = [...place.querySelectorAll(".steps > li")].map(({ textContent }) => textContent?.trim());
    expect(steps).toEqual(["expired by system", "The call goes on (run 2)"]);
  });
});

describe("a log", () => {
  const line = (number: number, message: string) => ({
    line: number,
    at: "2026-11-22T05:00:00Z",
    level: "error" as const,
    message,
  });
  const show = (...given: Parameters<typeof runsOf>) =>
    act(() => root.render(<Runs runs={runsOf(...given)} />));
  const items = () =>
    [...place.querySelectorAll("section")].map((run) => [
      run.querySelector("h5")?.textContent,
      ...[...run.querySelectorAll("li")].map(({ textContent }) => textContent),
    ]);

  it("numbers its lines by run, and says how many are missing", async () => {
    const kept = [
      { run: 1, left_out: 7, lines: [line(8, "a"), line(9, "b")] },
      { run: 2, left_out: 3, lines: [] },
    ];
    await show(kept, []);
    expect(items()).toEqual([
      ["Run 1", "7 lines not kept or not yet read", "8errora", "9errorb"],
      ["Run 2", "3 lines not kept or not yet read"],
    ]);
  });

  it("adds each live line once", async () => {
    const live = (run: number, number: number) => ({
      run,
      line: number,
      level: "info" as const,
      message: "live",
    });
    await show([{ run: 1, left_out: 0, lines: [line(1, "kept")] }], [live(1, 1), live(1, 3), live(2, 1)]);
    expect(items()).toEqual([
      ["Run 1", "1errorkept", "1 line not kept or not yet read", "3infolive"],
      ["Run 2", "1infolive"],
    ]);
  });

  it("shows a traceback as lines, and its text as text", async () => {
    await show([{ run: 1, left_out: 0, lines: [line(1, `Traceback:\n  ${HOSTILE}\r2 info forged`)] }], []);
    expect(place.querySelector("img")).toBeNull();
    const shown = place.querySelector(".log-message")?.textContent;
    expect(shown?.split("\n")).toEqual([
      "Traceback:",
      '  <img src=x onerror="alert(1)">\\u{202e}\\r2 info forged',
    ]);
    expect(place.querySelectorAll("li")).toHaveLength(1);
  });
});

describe("a damaged record", () => {
  it("is named in its turn, where the start may be unknown", async () => {
    const turn: TimelineTurn = { id: "turn_9", state: "unknown", unreadable: 3, calls: [] };
    await act(() => root.render(<Turn conversation="demo" turn={turn} />));
    expect(place.querySelector("h2")?.textContent).toBe("Turn turn_9");
    expect(place.querySelector('[role="status"]')?.textContent).toBe(
      "3 records cannot be read, because stored data is damaged; see toolgate store salvage.",
    );
  });
});

describe("a page that fails", () => {
  function Broken(): never {
    throw new Error("no such member");
  }

  it("says so, and other pages work", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const at = (path: string, child: React.ReactNode) =>
      root.render(<Boundary place={path}>{child}</Boundary>);
    await act(() => at("/audit", <Broken />));
    expect(place.querySelector('[role="alert"]')?.textContent).toContain("no such member");
    await act(() => at("/plugins", <p>fine</p>));
    expect(place.textContent).toBe("fine");
  });
});
