import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { JsonTree } from "../src/parts/json-tree";
import { Turn } from "../src/parts/turn";
import { Boundary } from "../src/shell/boundary";
import type { TimelineCall, TimelineTurn } from "../src/timeline/timeline";

let root: Root;
let place: HTMLElement;

beforeEach(() => {
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  place = document.body.appendChild(document.createElement("div"));
  root = createRoot(place);
});

afterEach(async () => {
  await act(() => root.unmount());
  place.remove();
});

const HOSTILE = '<img src=x onerror="alert(1)">\u202E';

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
          log: [{ level: "info", message: HOSTILE }],
          waits: [
            {
              suspension: "s",
              kind: "approval",
              prompt: HOSTILE,
              asked: { a: HOSTILE },
              openedAt: "",
              expiresAt: "",
              steps: [{ what: "voted", by: HOSTILE, via: HOSTILE, comment: HOSTILE, arguments: [HOSTILE] }],
              end: { state: "deny", by: HOSTILE, via: HOSTILE, comment: HOSTILE },
            },
          ],
          content: { ok: false, error: { code: "failed", message: HOSTILE } },
        },
      ],
    };
    await act(() => root.render(<Turn turn={turn} />));
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
          steps: [{ what: "voted", by: "ann", via: "link", arguments: { to: "bob", amount: 4 } }],
          end: { state: "approve", by: "carol" },
        },
      ],
    };
    const turn: TimelineTurn = { id: "t", caller: "agent", state: "settled", calls: [call] };
    await act(() => root.render(<Turn turn={turn} />));
    const steps = [...place.querySelectorAll(".steps > li")].map(({ textContent }) => textContent);
    expect(steps[0]).toMatch(/^ann \(by a link\) approved with edited arguments; more votes are needed/);
    expect(steps[1]).toMatch(/^approve by carol/);
    const edit = place.querySelector('[aria-label="What the edit of ann changes"]');
    expect([...(edit?.children ?? [])].map(({ textContent }) => textContent)).toEqual([
      "  {",
      '    "to": "bob",',
      '− removed:   "amount": 5',
      '+ added:   "amount": 4',
      "  }",
    ]);
    expect(steps[1]).not.toContain("edited");
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
