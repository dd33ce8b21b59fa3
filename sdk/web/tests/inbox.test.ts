import "./dom.js";
import { describe, expect, it } from "vitest";
import type { ToolgateApproval } from "../src/elements.js";
import { button, press, root, text } from "./cards.js";
import { until } from "./fake-clock.js";
import { problem, suspension } from "./fake-host.js";
import { article, cards, clock, host, inbox } from "./page.js";

describe("an inbox", () => {
  it("shows open suspensions, or an empty text", async () => {
    const element = await inbox();
    expect(text(element, "empty")).toBe("Nothing is waiting for you.");
    host.add(suspension());
    host.add(suspension({ kind: "elicitation", allowed: ["yes", "no"] }));
    host.add(suspension({ kind: "client_exec", allowed: ["result"] }));
    await until(() => text(element, "counts") === "Waiting: 1 approval, 1 question, 1 client call");
    expect(root(element).querySelectorAll('[part="item"]')).toHaveLength(3);
  });

  it("says how many records cannot be read", async () => {
    host.instead = ({ path }) =>
      path === "/v1/pending"
        ? {
            status: 200,
            body: { suspensions: [], next: null, unreadable: [{ suspension: "s", turn: null }] },
          }
        : undefined;
    const element = await inbox();
    expect(text(element, "unreadable")).toBe(
      "1 record cannot be read, because stored data is damaged. Nobody can answer what is missing here; see toolgate store salvage.",
    );
  });

  it("keeps a closed card for a moment, longer under the pointer", async () => {
    const [a, b] = [suspension(), suspension()];
    const element = await inbox(a, b);
    const list = root(element).querySelector('[part="list"]');
    list?.dispatchEvent(new window.Event("pointerenter"));
    host.end(a.suspension, "approve", "bob");
    await until(() => cards(element)[0]?.hasAttribute("closed"));
    clock.advance(4000);
    expect(cards(element)).toHaveLength(2);
    list?.dispatchEvent(new window.Event("pointerleave"));
    clock.advance(4000);
    expect(cards(element).map(({ suspension }) => suspension?.suspension)).toEqual([b.suspension]);
    // The card has moved, so it takes no answer.
    expect(cards(element)[0]?.isReady).toBe(false);
    clock.advance(500);
    expect(cards(element)[0]?.isReady).toBe(true);
  });

  it("moves the focus with j and k, and when a card disappears", async () => {
    const waiting = [suspension(), suspension(), suspension()] as const;
    const element = await inbox(...waiting);
    const focused = () => cards(element).indexOf(root(element).activeElement as ToolgateApproval);
    element.move(1);
    expect(focused()).toBe(0);
    press(article(cards(element)[0] as ToolgateApproval), "j");
    expect(focused()).toBe(1);
    press(article(cards(element)[1] as ToolgateApproval), "k");
    expect(focused()).toBe(0);
    host.end(waiting[0].suspension, "deny", "bob");
    await until(() => cards(element)[0]?.hasAttribute("closed"));
    clock.advance(4000);
    expect(cards(element)).toHaveLength(2);
    expect(focused()).toBe(0);
  });

  it("answers each selected card, except cards in the editor", async () => {
    const [a, b, c, d] = [
      suspension(),
      suspension(),
      suspension({ editable: "all" }),
      suspension({ risk: "high" }),
    ];
    const element = await inbox(a, b, c, d);
    const all = root(element).querySelector<HTMLInputElement>("#all");
    all?.click();
    expect(element.selected.map(({ suspension }) => suspension)).toEqual(
      [a, b, c].map(({ suspension }) => suspension),
    );
    button(cards(element)[2] as ToolgateApproval, "edit")?.click();
    host.ended.set(b.suspension, { ...b, closed: { state: "deny", by: "eve", at: "" } });
    host.open.delete(b.suspension);
    button(element, "batch")?.click();
    await until(() => text(element, "notice") !== "");
    expect(text(element, "notice")).toBe("1 approved, 1 not: see the cards.");
    const [sent] = host.at("POST", /pending\/resolve/);
    expect(JSON.parse(sent?.body ?? "")).toEqual({
      answers: [a, b].map(({ suspension }) => ({
        suspension,
        decision: "approve",
        expect_digest: "sha256:aa",
      })),
    });
    expect(text(cards(element)[2] as ToolgateApproval, "error")).toContain("being edited");
  });

  it("skips cards in a batch that are already approved", async () => {
    const voted = suspension({
      you: { may_answer: true, voted: true, counts_again: false, binding: "sha256:ee" },
    });
    const element = await inbox(voted, suspension());
    root(element).querySelector<HTMLInputElement>("#all")?.click();
    button(element, "batch")?.click();
    await until(() => text(element, "notice") !== "");
    expect(host.at("POST", /pending\/resolve/).map(({ body }) => JSON.parse(body).answers.length)).toEqual([
      1,
    ]);
    expect(text(cards(element)[0] as ToolgateApproval, "error")).toContain("approved it already");
  });

  it("says that it may be out of date, or why it shows nothing", async () => {
    const element = await inbox(suspension());
    host.cut();
    await until(() => text(element, "notice").includes("out of date"));
    host.instead = () => problem(401, "unauthorized", "the token was revoked");
    clock.advance(30_000);
    await until(() => text(element, "notice").includes("the token was revoked"));
  });

  it("filters by its attributes", async () => {
    const element = await inbox();
    element.setAttribute("tool", "pay");
    await until(() => host.at("GET", /^\/v1\/pending$/).length === 2);
    expect(host.at("GET", /^\/v1\/pending$/)[1]?.query.get("tool")).toBe("pay");
    host.add(suspension({ tool: "other" }));
    host.add(suspension({ tool: "pay" }));
    await until(() => text(element, "counts") === "Waiting: 1 approval");
  });

  it("filters by the call of a conversation", async () => {
    const element = await inbox();
    element.setAttribute("conversation", "c");
    element.setAttribute("call", "call_7");
    await until(() => host.at("GET", /^\/v1\/pending$/).some(({ query }) => query.get("call") === "call_7"));
    host.add(suspension({ call: "other" }));
    host.add(suspension({ call: "call_7" }));
    await until(() => text(element, "counts") === "Waiting: 1 approval");
  });

  it("says which of several approvals need others", async () => {
    const [two, one] = [suspension(), suspension()];
    const element = await inbox(two, one);
    host.instead = ({ path }) => {
      const ok = (suspension: string, state: string) => ({
        suspension,
        status: 200,
        ok: { ok: true, state },
      });
      const answers = [ok(two.suspension, "open"), ok(one.suspension, "approve")];
      return path === "/v1/pending/resolve" ? { status: 200, body: { answers } } : undefined;
    };
    root(element).querySelector<HTMLInputElement>("#all")?.click();
    button(element, "batch")?.click();
    await until(() => text(element, "notice") !== "");
    expect(text(element, "notice")).toBe("2 approved (1 still needs others).");
  });
});
