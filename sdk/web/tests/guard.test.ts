import "./dom.js";
import { describe, expect, it } from "vitest";
import { ToolgateApproval, ToolgateElicitation } from "../src/elements.js";
import type { Suspension } from "../src/wire.js";
import { button, press, root, text, type } from "./cards.js";
import { until } from "./fake-clock.js";
import { suspension } from "./fake-host.js";
import { appeared, clock, host } from "./page.js";

const APPEARED = "This card has just appeared or changed. Read it again before you answer.";
const isDisabled = (card: HTMLElement, part: string) => button(card, part)?.getAttribute("aria-disabled");
const asked = () => host.seen.filter(({ method }) => method === "POST");

describe("a card that has just appeared", () => {
  it.each(["approve", "deny", "edit", "hand"])("%s does nothing, and says why", async (part) => {
    const card = await appeared(new ToolgateApproval(), { editable: "all" });
    expect(isDisabled(card, part)).toBe("true");
    button(card, part)?.click();
    expect(text(card, "error")).toBe(APPEARED);
    clock.advance(499);
    expect(isDisabled(card, part)).toBe("true");
    clock.advance(1);
    expect(isDisabled(card, part)).toBe("false");
    expect(card.isEditing).toBe(false);
    expect(asked()).toEqual([]);
  });

  it.each(["a", "d", "e"])("the key %s does nothing, and the card says why", async (key) => {
    const card = await appeared(new ToolgateApproval(), { editable: "all" });
    press(root(card).querySelector("article"), key);
    expect(text(card, "error")).toBe(APPEARED);
    expect(card.isEditing).toBe(false);
    expect(asked()).toEqual([]);
  });

  it("gives a question no answer, and says why", async () => {
    const card = await appeared(new ToolgateElicitation(), {
      kind: "elicitation",
      allowed: ["answer", "decline"],
    });
    button(card, "answer")?.click();
    expect(text(card, "error")).toBe(APPEARED);
    clock.advance(500);
    press(root(card).querySelector("article"), "2");
    await until(() => card.hasAttribute("closed"));
    expect(text(card, "error")).toBe("");
    expect(asked()).toHaveLength(1);
  });
});

describe("a card takes answers again", () => {
  it("after it was removed and added again", async () => {
    const card = await appeared(new ToolgateApproval());
    clock.advance(499);
    card.remove();
    document.body.append(card);
    clock.advance(499);
    expect(card.isReady).toBe(false);
    clock.advance(1);
    expect(card.isReady).toBe(true);
  });

  it("after the pause passes while it is removed", async () => {
    const card = await appeared(new ToolgateApproval());
    card.remove();
    clock.advance(500);
    expect(isDisabled(card, "hand")).toBe("false");
    document.body.append(card);
    expect(card.isReady).toBe(false);
    clock.advance(500);
    expect(card.isReady).toBe(true);
  });

  it("after it shows another suspension, and says why not before", async () => {
    const card = await appeared(new ToolgateApproval());
    clock.advance(500);
    button(card, "approve")?.click();
    await until(() => card.hasAttribute("closed"));
    const next = suspension();
    host.add(next);
    card.suspension = next;
    button(card, "approve")?.click();
    expect(text(card, "error")).toBe(APPEARED);
    clock.advance(500);
    expect(card.isReady).toBe(true);
    expect(asked()).toHaveLength(1);
  });

  it("during an edit, even after changes by others", async () => {
    const card = await appeared(new ToolgateApproval(), { editable: "all" });
    clock.advance(500);
    button(card, "edit")?.click();
    const vote = { by: "ann", at: "x", binding: "sha256:aa" };
    host.change({ ...(card.suspension as Suspension), votes: [vote] });
    await until(() => text(card, "people").includes("ann"));
    clock.advance(500);
    type(root(card).querySelector("textarea"), "{}");
    expect(card.isReady).toBe(true);
    expect(text(card, "people")).toContain("ann approved");
  });
});

it("shows the message once after two presses", async () => {
  const card = await appeared(new ToolgateApproval());
  clock.advance(500);
  host.instead = ({ method }) =>
    method === "POST"
      ? { status: 200, body: { ok: true, replayed: false, state: "open", votes_missing: 1 } }
      : undefined;
  button(card, "approve")?.click();
  button(card, "approve")?.click();
  await until(() => text(card, "status").includes("recorded"));
  button(card, "approve")?.click();
  const vote = { by: "me", at: "x", binding: "sha256:aa" };
  host.change({ ...(card.suspension as Suspension), votes: [vote] });
  await until(() => text(card, "people").includes("me approved"));
  button(card, "approve")?.click();
  expect(text(card, "error")).toBe("");
  expect(asked()).toHaveLength(1);
});
