import "./dom.js";
import { describe, expect, it } from "vitest";
import { ToolgateApproval } from "../src/elements.js";
import type { Suspension, You } from "../src/wire.js";
import { button, press, root, text, type } from "./cards.js";
import { suspension } from "./fake-host.js";
import { cards, clock, host, inbox, toolgate } from "./page.js";

function approval(given: Partial<Suspension>): ToolgateApproval {
  const waiting = suspension(given);
  host.add(waiting);
  const card = new ToolgateApproval();
  card.toolgate = toolgate;
  card.suspension = waiting;
  document.body.append(card);
  clock.advance(500);
  return card;
}

const STANDING = { editable: "all", standing: { max_ttl_ms: 3_600_000, max_uses: 10 } } as const;
const sent = () => host.at("POST", /\/resolve/).map(({ body }) => JSON.parse(body));
const answers = () => host.at("POST", /pending\/resolve/).flatMap(({ body }) => JSON.parse(body).answers);
const standing = (card: HTMLElement) => root(card).querySelector<HTMLElement>('[part="standing"]');
const tick = (card: HTMLElement) => standing(card)?.querySelector<HTMLInputElement>("input")?.click();
const comment = (card: HTMLElement) => root(card).querySelector<HTMLInputElement>('[part="comment"] input');

describe("a standing approval", () => {
  it("is not given while the editor hides its controls", async () => {
    const card = approval(STANDING);
    tick(card);
    button(card, "edit")?.click();
    const [controls, note] = [...(standing(card)?.children ?? [])] as HTMLElement[];
    expect([standing(card)?.hidden, controls?.hidden, note?.hidden]).toEqual([false, true, false]);
    expect(note?.textContent).toContain("cannot also approve later calls");
    expect(await card.approve()).toBe(true);
    expect(sent()).toEqual([{ decision: "approve", expect_digest: "sha256:aa" }]);
  });

  it("is given again after editing stops, and not shown if unused", async () => {
    const card = approval(STANDING);
    button(card, "edit")?.click();
    expect(standing(card)?.hidden).toBe(true);
    button(card, "edit")?.click();
    expect(standing(card)?.hidden).toBe(false);
    tick(card);
    await card.approve();
    expect(sent()).toMatchObject([{ standing: { uses: 5, pin: "all" } }]);
  });

  it("blocks the approval of another approver's edit", async () => {
    const edit = '{"to":"bob","amount":1}';
    const votes = [{ by: "ann", at: "x", binding: "sha256:ee", arguments: JSON.parse(edit), display: edit }];
    const card = approval({ ...STANDING, votes });
    tick(card);
    expect(await card.approveEditOf("sha256:ee")).toBe(false);
    expect(text(card, "error")).toContain("cannot also approve later calls");
    tick(card);
    expect(await card.approveEditOf("sha256:ee")).toBe(true);
    expect(sent()).toHaveLength(1);
  });
});

describe("answers to several cards at once", () => {
  it.each(["approve", "deny"] as const)("carry the comment of each card: %s", async (decision) => {
    const element = await inbox(suspension(), suspension());
    type(comment(cards(element)[0] as ToolgateApproval), "as agreed");
    for (const card of cards(element)) press(root(card).querySelector("article"), "x");
    root(element).querySelector<HTMLInputElement>("#all")?.click();
    await element.answerSelected(decision);
    expect(answers().map(({ comment }: { comment?: string }) => comment)).toEqual(["as agreed", undefined]);
  });

  it("skip a card with a standing approval, and say so", async () => {
    const element = await inbox(suspension(STANDING), suspension());
    tick(cards(element)[0] as ToolgateApproval);
    root(element).querySelector<HTMLInputElement>("#all")?.click();
    await element.answerSelected("approve");
    expect(answers()).toMatchObject([{ suspension: cards(element)[1]?.suspension?.suspension }]);
    expect(text(cards(element)[0] as ToolgateApproval, "error")).toContain(
      "it would also approve later calls",
    );
    await element.answerSelected("deny");
    expect(answers()[1]).toMatchObject({
      suspension: cards(element)[0]?.suspension?.suspension,
      decision: "deny",
    });
  });
});

describe("an approver who has voted", () => {
  const you = (given: Partial<You> = {}): { you: You } => ({
    you: { may_answer: true, voted: true, counts_again: false, binding: "sha256:aa", ...given },
  });
  const isOffered = (card: HTMLElement) => button(card, "approve")?.getAttribute("aria-disabled") === "false";

  it("is not asked again unless the approval would count for more", async () => {
    expect(isOffered(approval(you()))).toBe(false);
    const card = approval(you({ counts_again: true }));
    expect(isOffered(card)).toBe(true);
    expect(text(card, "status")).toBe(
      "You have approved. You have more authority than when you approved. Approve again to use it.",
    );
    expect(await card.approve()).toBe(true);
  });

  it("answers a batch without replacing a vote for an edit", async () => {
    const element = await inbox(
      suspension(you({ counts_again: true })),
      suspension(you({ counts_again: true, binding: "sha256:ee" })),
    );
    root(element).querySelector<HTMLInputElement>("#all")?.click();
    await element.answerSelected("approve");
    expect(answers()).toHaveLength(1);
    expect(text(cards(element)[1] as ToolgateApproval, "error")).toContain("approved it already");
  });
});
