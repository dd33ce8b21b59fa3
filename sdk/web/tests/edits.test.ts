import "./dom.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ToolgateApproval, ToolgateInbox } from "../src/elements.js";
import { Toolgate } from "../src/index.js";
import type { Suspension, Vote } from "../src/wire.js";
import { button, root, text, type } from "./cards.js";
import { FakeClock, until } from "./fake-clock.js";
import { FakeHost, suspension } from "./fake-host.js";

let host: FakeHost;
let clock: FakeClock;
beforeEach(async () => {
  host = await FakeHost.start();
  clock = new FakeClock();
});
afterEach(async () => {
  document.body.replaceChildren();
  await host.stop();
});

/** Shows a card, and waits until it follows the host. */
async function approval(given: Partial<Suspension>): Promise<ToolgateApproval> {
  const waiting = suspension(given);
  host.add(waiting);
  const card = new ToolgateApproval();
  card.toolgate = new Toolgate({ url: host.url, token: "t", clock });
  card.suspension = waiting;
  const before = host.streams.size;
  document.body.append(card);
  await until(() => host.streams.size > before);
  clock.advance(500);
  return card;
}

const bodies = () => host.at("POST", /resolve/).map(({ body }) => body);

describe("an approval that another approver has edited", () => {
  const EDITED = '{"to":"bob","n":12345678901234567890,"amount":50.0}';
  const ASKED = '{"to":"bob","n":12345678901234567890,"amount":5000}';
  const vote = (by: string, given: Partial<Vote> = {}): Vote => ({
    by,
    at: "x",
    binding: "sha256:ee",
    arguments: JSON.parse(EDITED),
    display: EDITED,
    ...given,
  });
  const edited = (given: Partial<Suspension> = {}) =>
    approval({
      editable: "all",
      arguments: JSON.parse(ASKED),
      display: { arguments: ASKED },
      needs: [{ who: ["group:finance"], quorum: 3, votes: 2, escalated: false }],
      votes: [vote("ann\u202e"), vote("bob", { via: "link", comment: "so do I" })],
      ...given,
    });
  const joins = (card: HTMLElement) => [...root(card).querySelectorAll<HTMLButtonElement>('[part~="join"]')];

  it("shows what the edit changes, and approves exactly that", async () => {
    const card = await edited();
    const lines = [...root(card).querySelectorAll('[part~="people"] [part~="diff"] li')];
    expect(lines.map(({ textContent }) => textContent).slice(-3)).toEqual([
      '− removed:   "amount": 5000',
      '+ added:   "amount": 50.0',
      "  }",
    ]);
    expect(text(card, "people")).toContain(
      "bob (by a link) approved, with the same edit as ann\\u{202e}: “so do I”",
    );
    expect(joins(card).map(({ textContent }) => textContent)).toEqual(["Approve as ann\\u{202e} edited"]);
    joins(card)[0]?.click();
    joins(card)[0]?.click();
    await until(() => card.hasAttribute("closed"));
    expect(bodies()).toEqual([`{"decision":"approve","arguments":${EDITED},"expect_digest":"sha256:aa"}`]);
    expect(joins(card)[0]?.hidden).toBe(true);
  });

  it("says why somebody may not join it", async () => {
    const why = async (given: Partial<Suspension>) => {
      const card = await edited(given);
      const [join] = joins(card);
      expect(join?.getAttribute("aria-disabled")).toBe("true");
      join?.click();
      expect(await card.approveEditOf("sha256:ee")).toBe(false);
      return root(card).getElementById(join?.getAttribute("aria-describedby") ?? "")?.textContent;
    };
    expect(await why({ you: { may_answer: false, why_not: "others decide this", voted: false } })).toBe(
      "others decide this",
    );
    expect(await why({ editable: "none" })).toBe("The arguments of this call may not be edited.");
    expect(await why({ you: { may_answer: true, voted: true, binding: "sha256:ee" } })).toBe(
      "You have approved this edit.",
    );
    expect(bodies()).toEqual([]);
  });

  it("lets who voted otherwise change their vote, and who voted the same not vote again", async () => {
    const asEdited = await edited({ you: { may_answer: true, voted: true, binding: "sha256:ee" } });
    expect(button(asEdited, "approve")?.textContent).toBe("Approve as asked insteada");
    expect(button(asEdited, "approve")?.getAttribute("aria-disabled")).toBe("false");
    expect(text(asEdited, "status")).toBe(
      "You have approved with edited arguments. More approvals are needed.",
    );
    const asAsked = await edited({ you: { may_answer: true, voted: true, binding: "sha256:aa" } });
    expect(button(asAsked, "approve")?.getAttribute("aria-disabled")).toBe("true");
    expect(joins(asAsked)[0]?.getAttribute("aria-disabled")).toBe("false");
  });

  it("takes no answer in the moment in which an edit appears, and keeps its button until the votes change", async () => {
    const card = await edited({ votes: [] });
    const waiting = card.suspension as Suspension;
    host.change({ ...waiting, votes: [vote("ann")] });
    await until(() => joins(card).length === 1);
    expect(card.isReady).toBe(false);
    expect(button(card, "approve")?.getAttribute("aria-disabled")).toBe("true");
    clock.advance(500);
    const [join] = joins(card);
    expect(join?.getAttribute("aria-disabled")).toBe("false");
    join?.focus();
    host.change({ ...waiting, votes: [vote("ann")], risk: "high" });
    await until(() => card.suspension?.risk === "high");
    expect(joins(card)[0]).toBe(join);
    expect(root(card).activeElement).toBe(join);
    expect(card.isReady).toBe(true);
  });

  it("does not take the second press of a double click for another vote", async () => {
    const card = await edited({ votes: [] });
    host.instead = ({ method }) =>
      method === "POST"
        ? { status: 200, body: { ok: true, replayed: false, state: "open", votes_missing: 1 } }
        : undefined;
    button(card, "edit")?.click();
    type(root(card).querySelector("textarea"), EDITED);
    button(card, "approve")?.click();
    await until(() => !card.isEditing);
    expect(await card.approve()).toBe(false);
    expect(bodies()).toHaveLength(1);
    expect(bodies()[0]).toContain(EDITED);
  });
});

describe("what became of it while nobody listened", () => {
  const VOTED: Partial<Suspension> = {
    votes: [{ by: "ann", at: "x", binding: "sha256:aa" }],
    you: { may_answer: true, voted: true, binding: "sha256:aa" },
  };
  const changeUnheard = (waiting: Suspension) => {
    host.open.set(waiting.suspension, { ...waiting, ...VOTED });
    host.tell("/v1/pending/events", "pending.reset", {});
  };

  it("is on its card", async () => {
    const card = await approval({});
    changeUnheard(card.suspension as Suspension);
    await until(() => text(card, "people").includes("ann approved"));
    expect(button(card, "approve")?.getAttribute("aria-disabled")).toBe("true");
  });

  it("is nothing to select in the inbox where it took the say away", async () => {
    const waiting = [suspension(), suspension()];
    for (const one of waiting) host.add(one);
    const inbox = new ToolgateInbox();
    inbox.toolgate = new Toolgate({ url: host.url, token: "t", clock });
    document.body.append(inbox);
    const picks = () => [...root(inbox).querySelectorAll<HTMLInputElement>("li input[type=checkbox]")];
    const batch = () => root(inbox).querySelector<HTMLElement>('[part="bar"] .row');
    await until(() => picks().length === 2);
    for (const pick of picks()) pick.click();
    expect(batch()?.hidden).toBe(false);
    for (const one of waiting)
      host.change({ ...one, you: { may_answer: false, why_not: "it was handed on", voted: false } });
    await until(() => picks().every(({ disabled }) => disabled));
    expect(inbox.selected).toEqual([]);
    expect(batch()?.hidden).toBe(true);
  });

  it("is known to the inbox when several are answered", async () => {
    const waiting = suspension();
    host.add(waiting);
    const inbox = new ToolgateInbox();
    inbox.toolgate = new Toolgate({ url: host.url, token: "t", clock });
    document.body.append(inbox);
    await until(() => inbox.store?.status.state === "live");
    changeUnheard(waiting);
    await until(() => inbox.store?.get(waiting.suspension)?.you?.voted);
    root(inbox).querySelector<HTMLElement>("li input[type=checkbox]")?.click();
    await inbox.answerSelected("approve");
    const card = root(inbox).querySelector("toolgate-approval") as ToolgateApproval;
    expect(text(card, "error")).toBe("Left out: you have approved it already.");
    expect(bodies()).toEqual([]);
  });
});
