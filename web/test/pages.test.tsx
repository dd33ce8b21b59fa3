import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { JsonTree } from "../src/parts/json-tree";
import { Turn } from "../src/parts/turn";
import { Boundary } from "../src/shell/boundary";
import type { TimelineTurn } from "../src/timeline/timeline";

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

describe("text of strangers", () => {
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
              openedAt: "",
              expiresAt: "",
              steps: [{ what: "voted", by: HOSTILE, comment: HOSTILE }],
              end: { state: "deny", by: HOSTILE, comment: HOSTILE },
            },
          ],
          content: { ok: false, error: { code: "failed", message: HOSTILE } },
        },
      ],
    };
    await act(() => root.render(<Turn turn={turn} />));
    expect(place.querySelector("img")).toBeNull();
    expect(place.textContent).not.toContain("\u202E");
    expect(place.querySelector('[role="progressbar"]')?.getAttribute("aria-valuenow")).toBe("50");
  });
});

describe("a page that breaks", () => {
  function Broken(): never {
    throw new Error("no such member");
  }

  it("says so, and another page works", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const at = (path: string, child: React.ReactNode) =>
      root.render(<Boundary place={path}>{child}</Boundary>);
    await act(() => at("/audit", <Broken />));
    expect(place.querySelector('[role="alert"]')?.textContent).toContain("no such member");
    await act(() => at("/plugins", <p>fine</p>));
    expect(place.textContent).toBe("fine");
  });
});
