import "./dom.js";
import { describe, expect, it } from "vitest";
import { approvedArguments, approvedEdit, lacksApproved } from "../src/elements/arguments.js";
import {
  type ToolgateApproval,
  ToolgateClientCall,
  ToolgateElicitation,
  ToolgateInbox,
} from "../src/elements.js";
import type { Suspension, Vote } from "../src/wire.js";
import { button, root, text, type } from "./cards.js";
import { until } from "./fake-clock.js";
import { problem, suspension } from "./fake-host.js";
import { approval, bodies, clock, host, shown, toolgate } from "./page.js";

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
      needs: [{ who: ["group:finance"], quorum: 3, votes: 2, escalated: false, via: ["console", "link"] }],
      votes: [vote("ann\u202e", { via: "console" }), vote("bob", { via: "link", comment: "so do I" })],
      ...given,
    });
  const joins = (card: HTMLElement) => [...root(card).querySelectorAll<HTMLButtonElement>('[part~="join"]')];

  it("shows the changes of the edit, and approves exactly that", async () => {
    const card = await edited();
    const lines = [...root(card).querySelectorAll('[part~="people"] [part~="diff"] li')];
    expect(lines.map(({ textContent }) => textContent).slice(-3)).toEqual([
      '− removed:   "amount": 5000',
      '+ added:   "amount": 50.0',
      "  }",
    ]);
    expect(text(card, "people")).toContain("; must be answered through: console, link");
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

  it("says why the principal may not approve it", async () => {
    const why = async (given: Partial<Suspension>) => {
      const card = await edited(given);
      const [join] = joins(card);
      expect(join?.getAttribute("aria-disabled")).toBe("true");
      join?.click();
      expect(await card.approveEditOf("sha256:ee")).toBe(false);
      return root(card).getElementById(join?.getAttribute("aria-describedby") ?? "")?.textContent;
    };
    expect(
      await why({
        you: { may_answer: false, why_not: "others decide this", voted: false, counts_again: false },
      }),
    ).toBe("others decide this");
    expect(await why({ editable: "none" })).toBe("The arguments of this call may not be edited.");
    expect(
      await why({ you: { may_answer: true, voted: true, counts_again: false, binding: "sha256:ee" } }),
    ).toBe("You have approved this edit.");
    expect(bodies()).toEqual([]);
  });

  it("lets an approver change their vote, but not repeat it", async () => {
    const asEdited = await edited({
      you: { may_answer: true, voted: true, counts_again: false, binding: "sha256:ee" },
    });
    expect(button(asEdited, "approve")?.textContent).toBe("Approve as submitted insteada");
    expect(button(asEdited, "approve")?.getAttribute("aria-disabled")).toBe("false");
    expect(text(asEdited, "status")).toBe(
      "You have approved with edited arguments. More approvals are needed.",
    );
    const asAsked = await edited({
      you: { may_answer: true, voted: true, counts_again: false, binding: "sha256:aa" },
    });
    expect(button(asAsked, "approve")?.getAttribute("aria-disabled")).toBe("true");
    expect(joins(asAsked)[0]?.getAttribute("aria-disabled")).toBe("false");
  });

  it("takes no answer when an edit appears, and keeps its button", async () => {
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

  it("counts a double click as one vote", async () => {
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

describe("the arguments of an approval, submitted and approved", () => {
  const SUBMITTED = '{"to":"bob","n":12345678901234567890,"amount":5000}';
  const EDIT = '{"to":"b\\u043eb","n":12345678901234567890,"amount":50.0}';
  const editable = (given: Partial<Suspension> = {}) =>
    approval({
      editable: "all",
      arguments: JSON.parse(SUBMITTED),
      arguments_digest: "sha256:su",
      display: { arguments: SUBMITTED },
      prompt_by: "plugin",
      prompt: "Pay bob?",
      ...given,
    });
  const shown = (card: HTMLElement) => [...(root(card).querySelector('[part~="arguments"]')?.children ?? [])];
  const labels = (card: HTMLElement) =>
    [...root(card).querySelectorAll('[part~="arguments"] .label')].map(({ textContent }) => textContent);
  const edited = async (card: HTMLElement) => {
    await until(() => text(card, "approved") !== "");
    expect(labels(card)).toEqual(["Approved arguments", "Changes by the approver", "Arguments as submitted"]);
    expect(text(card, "approved")).toBe(
      'Approved arguments{\n  "to": "b\\u043eb",\n  "n": 12345678901234567890,\n  "amount": 50.0\n}' +
        "Digest of the arguments: sha256:ed",
    );
    expect(text(card, "submitted")).toContain('"amount": 5000\n}Digest of the arguments: sha256:su');
    const lines = [...root(card).querySelectorAll('[part~="arguments"] [part~="diff"] li')];
    expect(lines.map(({ textContent }) => textContent)).toContain('− removed:   "amount": 5000');
    expect(lines.map(({ textContent }) => textContent)).toContain('+ added:   "amount": 50.0');
    expect(root(card).querySelector("figcaption")?.textContent).toBe(
      "In the plugin’s words, about the arguments as submitted",
    );
  };

  it("shows both after somebody else approved an edit", async () => {
    const card = await editable();
    expect(labels(card)).toEqual(["Arguments, complete"]);
    host.end(card.suspension?.suspension ?? "", "approve", "bob", undefined, EDIT);
    await edited(card);
    expect(text(card, "status")).toBe("Approved by bob, with edited arguments.");
  });

  it("shows both after an edit of its own", async () => {
    const card = await editable();
    button(card, "edit")?.click();
    type(root(card).querySelector("textarea"), EDIT);
    button(card, "approve")?.click();
    await edited(card);
    await until(() => text(card, "status") === "Approved by me, with edited arguments.");
  });

  it("shows both after its own answer came too late", async () => {
    const card = await editable();
    host.instead = ({ method }) => {
      if (method !== "POST") return undefined;
      host.instead = undefined;
      host.ended.set(card.suspension?.suspension ?? "", {
        ...(card.suspension as Suspension),
        state: "approve",
        closed: {
          state: "approve",
          by: "bob",
          at: "x",
          arguments: JSON.parse(EDIT),
          arguments_digest: "sha256:ed",
        },
        display: { arguments: SUBMITTED, approved_arguments: EDIT },
      });
      host.open.clear();
      return problem(409, "stale", "no longer open", { state: "approve", by: "bob" });
    };
    await card.approve();
    await edited(card);
    await until(() => text(card, "status") === "Approved by bob, with edited arguments.");
  });

  it("shows no submitted arguments as approved before it knows", async () => {
    const card = await editable();
    host.instead = ({ method, path }) =>
      method === "GET" && path.startsWith("/v1/suspensions/") ? { status: 503 } : undefined;
    host.end(card.suspension?.suspension ?? "", "approve", "bob", undefined, EDIT);
    await until(() => card.hasAttribute("closed"));
    expect(labels(card)).toEqual(["Arguments as submitted"]);
    expect(text(card, "arguments")).toContain("Loading the approved arguments …");
    await until(() => host.at("GET", /suspensions/).length === 1);
    host.instead = undefined;
    await until(() => {
      clock.advance(3000);
      return text(card, "approved") !== "";
    });
    await edited(card);
  });

  it("says so where the approver changed nothing", async () => {
    const card = await editable();
    host.end(card.suspension?.suspension ?? "", "approve", "bob");
    await until(() => card.hasAttribute("closed"));
    expect(labels(card)).toEqual(["Approved arguments, as submitted"]);
    expect(host.at("GET", /suspensions/)).toEqual([]);
  });

  it("says so where the edit is the same text", async () => {
    const card = await editable();
    host.end(card.suspension?.suspension ?? "", "approve", "bob", undefined, SUBMITTED);
    await until(() => labels(card)[0] === "Approved arguments, as submitted");
  });

  it.each(["deny", "expired", "withdrawn"])("calls them submitted after %s", async (state) => {
    const card = await editable();
    host.end(card.suspension?.suspension ?? "", state, "bob");
    await until(() => card.hasAttribute("closed"));
    expect(labels(card)).toEqual(["Arguments as submitted"]);
    expect(shown(card)).toHaveLength(3);
  });

  it("calls them submitted while a vote is for an edit", async () => {
    const vote = { by: "ann", at: "x", binding: "sha256:ee", arguments: JSON.parse(EDIT), display: EDIT };
    const card = await editable({ votes: [vote] });
    expect(labels(card)).toEqual(["Arguments as submitted"]);
    expect(text(card, "people")).toContain("ann approved, with edited arguments");
  });
});

describe("a suspension whose arguments an approver edited before", () => {
  const EDITED = '{"to":"bob","amount":50}';
  const given: Partial<Suspension> = {
    arguments: JSON.parse(EDITED),
    arguments_digest: "sha256:ed",
    submitted: { to: "eve", amount: 5000 },
    display: { arguments: EDITED, submitted: '{"to":"\\u202eeve","amount":5000}' },
  };
  const labels = (card: HTMLElement) =>
    [...root(card).querySelectorAll('[part~="arguments"] .label')].map(({ textContent }) => textContent);
  const BESIDE = ["Changes by the approver", "Arguments as submitted"];
  const shows = (card: HTMLElement, ...expected: string[]) => {
    expect(labels(card)).toEqual([...expected, ...BESIDE]);
    expect(text(card, "submitted")).toContain('"to": "\\u202eeve",\n  "amount": 5000');
    expect(text(card, "arguments")).toContain("Digest of the arguments: sha256:ed");
    const lines = [...root(card).querySelectorAll('[part~="diff"] li')].map(({ textContent }) => textContent);
    expect(lines).toContain('− removed:   "amount": 5000');
    expect(lines).toContain('+ added:   "amount": 50');
  };

  it("shows both where the call is approved again", async () => {
    const card = await approval({ ...given, in_doubt_attempt: 1 });
    shows(card, "Arguments, as an approver edited them before");
    expect(root(card).textContent).toContain("Digest of the call: ");
    host.end(card.suspension?.suspension ?? "", "approve", "bob");
    await until(() => card.hasAttribute("closed"));
    shows(card, "Approved arguments");
    expect(text(card, "approved")).toContain('"amount": 50\n}Digest of the arguments: sha256:ed');
  });

  it.each(["deny", "expired"])("shows both after %s", async (state) => {
    const card = await approval({ ...given, in_doubt_attempt: 1 });
    host.end(card.suspension?.suspension ?? "", state, "bob");
    await until(() => card.hasAttribute("closed"));
    shows(card, "Arguments, as an approver edited them before");
  });

  it("shows both where a client carries the call out", async () => {
    const card = new ToolgateClientCall();
    card.suspension = suspension({ ...given, kind: "client_exec" });
    document.body.append(card);
    shows(card, "Arguments, as an approver edited them before");
  });

  it("shows both in a question of its code", async () => {
    const card = await shown(new ToolgateElicitation(), { ...given, kind: "elicitation", step: 1 });
    shows(card, "Arguments, as an approver edited them before");
    expect(root(card).querySelector<HTMLDetailsElement>("details")?.open).toBe(true);
  });
});

describe("a change during a gap of the stream", () => {
  const VOTED: Partial<Suspension> = {
    votes: [{ by: "ann", at: "x", binding: "sha256:aa" }],
    you: { may_answer: true, voted: true, counts_again: false, binding: "sha256:aa" },
  };
  const changeUnheard = (waiting: Suspension) => {
    host.open.set(waiting.suspension, { ...waiting, ...VOTED });
    host.tell("/v1/pending/events", "pending.reset", {});
  };

  it("is shown on the card", async () => {
    const card = await approval({});
    changeUnheard(card.suspension as Suspension);
    await until(() => text(card, "people").includes("ann approved"));
    expect(button(card, "approve")?.getAttribute("aria-disabled")).toBe("true");
  });

  it("cannot be selected in the inbox after a delegation", async () => {
    const waiting = [suspension(), suspension()];
    for (const one of waiting) host.add(one);
    const inbox = new ToolgateInbox();
    inbox.toolgate = toolgate;
    document.body.append(inbox);
    const picks = () => [...root(inbox).querySelectorAll<HTMLInputElement>("li input[type=checkbox]")];
    const batch = () => root(inbox).querySelector<HTMLElement>('[part="bar"] .row');
    await until(() => picks().length === 2);
    for (const pick of picks()) pick.click();
    expect(batch()?.hidden).toBe(false);
    for (const one of waiting)
      host.change({
        ...one,
        you: { may_answer: false, why_not: "it was delegated", voted: false, counts_again: false },
      });
    await until(() => picks().every(({ disabled }) => disabled));
    expect(inbox.selected).toEqual([]);
    expect(batch()?.hidden).toBe(true);
  });

  it("is known to the inbox for a batch", async () => {
    const waiting = suspension();
    host.add(waiting);
    const inbox = new ToolgateInbox();
    inbox.toolgate = toolgate;
    document.body.append(inbox);
    await until(() => inbox.store?.status.state === "live");
    changeUnheard(waiting);
    await until(() => inbox.store?.get(waiting.suspension)?.you?.voted);
    root(inbox).querySelector<HTMLElement>("li input[type=checkbox]")?.click();
    await inbox.answerSelected("approve");
    const card = root(inbox).querySelector("toolgate-approval") as ToolgateApproval;
    expect(text(card, "error")).toBe("Skipped: you have approved it already.");
    expect(bodies()).toEqual([]);
  });
});

it("does not treat the choice `approve` as an approval", () => {
  const closed = { state: "approve", by: "bob", at: "2026-01-01T00:00:00Z", arguments: { to: "eve" } };
  const question = suspension({
    kind: "elicitation",
    state: "approve",
    allowed: ["approve"],
    editable: "all",
  });
  const ended = { suspension: question.suspension, conversation: "c", ...closed, edited: true };
  expect(lacksApproved(question, ended)).toBe(false);
  expect(lacksApproved({ ...question, kind: "approval" }, ended)).toBe(true);
  expect(approvedEdit({ ...question, closed })).toBeUndefined();
  expect(approvedEdit({ ...question, kind: "approval", closed })).toContain("eve");
  const shown = approvedArguments({ ...question, closed }, ended).map(({ textContent }) => textContent);
  expect(shown.join()).toContain("Arguments as submitted");
  expect(shown.join()).not.toContain("eve");
});
