import "./dom.js";
import { describe, expect, it } from "vitest";
import type { AnsweredDetail, ClosedDetail } from "../src/elements.js";
import { ToolgateApproval } from "../src/elements.js";
import type { Suspension } from "../src/wire.js";
import { button, press, root, text, type } from "./cards.js";
import { until } from "./fake-clock.js";
import { problem, suspension } from "./fake-host.js";
import { approval, article, bodies, clock, host, toolgate } from "./page.js";

describe("an approval", () => {
  it("shows the complete arguments and the author of each text", async () => {
    const amounts = Array.from({ length: 200 }, (_, i) => i);
    const card = await approval({
      arguments: { amounts } as never,
      display: { prompt: "<b>Pay</b> bob\\u{202e}?", arguments: JSON.stringify({ amounts }) },
      reason: "over the limit",
      asked_by: "large-payments",
      risk: "high",
      arguments_digest: "sha256:bb",
      needs: [{ who: ["group:finance", "principal:alice"], quorum: 2, votes: 1, escalated: false }],
      votes: [{ by: "carol", at: "x", comment: "fine\u202e", binding: "b" }],
    });
    for (const amount of amounts) expect(text(card, "json")).toContain(`\n    ${amount}`);
    expect(text(card, "prompt")).toBe("In the plugin’s words<b>Pay</b> bob\\u{202e}?");
    expect(root(card).querySelector("b")).toBeNull();
    expect(text(card, "reason")).toBe("Why: over the limit (rule large-payments)");
    expect(text(card, "risk")).toBe("high risk");
    expect(text(card, "arguments")).toContain("sha256:bb");
    expect(text(card, "people")).toBe(
      "Who approves1 of 2 from group finance, alicecarol approved: “fine\\u{202e}”",
    );
    expect(text(card, "expiry")).toMatch(
      /^Open for 9 min 59 s, until .*; then the call ends without running\.$/,
    );
  });

  it("in the middle of a call shows the value", async () => {
    const card = await approval({
      step: 2,
      arguments: { plan: "blue" } as never,
      display: { arguments: '{"plan":"blue"}' },
      on_expiry: "continue",
    });
    expect(text(card, "reason")).toBe(
      "Step 2 of a call that has begun. The plugin wrote this question. The host cannot know whether later effects match the answer.",
    );
    expect(text(card, "arguments")).toContain("Value to decide about, complete");
    expect(text(card, "expiry")).toMatch(/; then the call continues without an answer\.$/);
  });

  it("of a nested call says which tool of which plugin made it", async () => {
    const parent = { conversation: "c", turn: "t", call: "p", plugin: "rollout", tool: "a\u202eb", depth: 1 };
    const card = await approval({ parent });
    const said = "called by a\\u{202e}b of the plugin rollout, which chose the arguments";
    expect(root(card).querySelector(".from")?.textContent).toContain(said);
    expect(root(await approval({})).querySelector(".from")?.textContent).not.toContain("called by");
  });

  it("in the middle of a call shows the steps before it", async () => {
    const step = (step: number, kind: string, more: object) => ({
      step,
      suspension: "s",
      kind,
      since: "2026-11-22T05:00:00Z",
      at: "2026-11-22T05:01:00Z",
      ...more,
    });
    const earlier = [
      step(2, "elicitation", { prompt: "Where\\u{202e}?", state: "answer", by: "a\u202enn" }),
      step(3, "approval", { state: "approve", by: "bob", approvers: ["ann", "bob"] }),
      step(4, "timer", { state: "expired", by: "system" }),
      step(5, "external", { state: "result", by: "ci" }),
    ];
    const card = await approval({ step: 6, earlier: earlier as never });
    const shown = root(card).querySelector('[part="earlier"]');
    expect(shown?.querySelector(".label")?.textContent).toBe("The last 4 of 5 earlier steps");
    const lines = [...(shown?.querySelectorAll("li") ?? [])].map(({ textContent }) => textContent);
    // The times have the form of the reader's locale.
    const untimed = lines.map((line) => line?.replace(/, \w+ \d.*$/, ""));
    expect(untimed).toEqual([
      "2. Question “Where\\u{202e}?”: answer by a\\u{202e}nn",
      "3. Approval: approve by ann and bob",
      "4. Sleep: over",
      "5. External wait: result by ci",
    ]);
    const first = await approval({ step: 1 });
    expect(root(first).querySelector('[part="earlier"]')).toBeNull();
  });

  it("is answered once, with the digest of the shown call", async () => {
    const card = await approval();
    const received: AnsweredDetail[] = [];
    card.addEventListener("toolgate-answered", (event) =>
      received.push((event as CustomEvent<AnsweredDetail>).detail),
    );
    button(card, "approve")?.click();
    button(card, "approve")?.click();
    await until(() => card.hasAttribute("closed"));
    expect(bodies()).toEqual(['{"decision":"approve","expect_digest":"sha256:aa"}']);
    expect(received).toMatchObject([{ decision: "approve", answered: { ok: true } }]);
    await until(() => text(card, "status") === "Approved by me.");
  });

  it("takes no answer when it has just appeared", async () => {
    const waiting = suspension();
    const card = new ToolgateApproval();
    card.toolgate = toolgate;
    card.suspension = waiting;
    document.body.append(card);
    expect(button(card, "approve")?.getAttribute("aria-disabled")).toBe("true");
    button(card, "approve")?.click();
    press(article(card), "d");
    clock.advance(500);
    expect(button(card, "approve")?.getAttribute("aria-disabled")).toBe("false");
    expect(bodies()).toEqual([]);
  });

  it("closes when somebody else has answered, and says who", async () => {
    const card = await approval();
    const received: ClosedDetail[] = [];
    card.addEventListener("toolgate-closed", (event) =>
      received.push((event as CustomEvent<ClosedDetail>).detail),
    );
    host.end(card.suspension?.suspension ?? "", "deny", "dora\u202e");
    await until(() => card.hasAttribute("closed"));
    expect(text(card, "status")).toBe("Denied by dora\\u{202e}.");
    expect(button(card, "approve")?.getAttribute("aria-disabled")).toBe("true");
    button(card, "approve")?.click();
    press(article(card), "a");
    expect(bodies()).toEqual([]);
    expect(received).toMatchObject([{ closed: { state: "deny" } }]);
  });

  it("names all whose approvals count", async () => {
    const card = await approval();
    const { suspension = "", conversation = "" } = card.suspension ?? {};
    const approvers = ["ann", "b\u043eb", "cid"];
    const closed = {
      suspension,
      conversation,
      state: "approve",
      by: "cid",
      approvers,
      at: "",
      edited: false,
    };
    host.tell("/v1/pending/events", "pending.closed", closed);
    await until(() => card.hasAttribute("closed"));
    expect(text(card, "status")).toBe("Approved by ann, b\\u{43e}b and cid.");
  });

  it("names the winner when two answer at once", async () => {
    const card = await approval();
    host.instead = ({ method }) =>
      method === "POST"
        ? problem(409, "stale", "no longer open", { state: "approve", by: "eve" })
        : undefined;
    button(card, "deny")?.click();
    await until(() => card.hasAttribute("closed"));
    expect(text(card, "status")).toBe("Approved by eve.");
  });

  it("says that a link answered, however it learns of the end", async () => {
    const [heard, gone] = [await approval(), await approval()];
    host.end(heard.suspension?.suspension ?? "", "approve", "oncall", "link\u202e");
    await until(() => heard.hasAttribute("closed"));
    expect(text(heard, "status")).toBe("Approved by oncall (by a link\\u{202e}).");
    // The suspension says it, and the refusal does not.
    const id = gone.suspension?.suspension ?? "";
    host.ended.set(id, {
      ...gone.suspension,
      closed: { state: "deny", by: "eve", at: "", via: "link" },
    } as Suspension);
    host.open.delete(id);
    button(gone, "deny")?.click();
    await until(() => text(gone, "status") === "Denied by eve (by a link).");
  });

  it("names the winner if the event precedes the refusal", async () => {
    const card = await approval();
    const resolve = toolgate.resolve.bind(toolgate);
    let isRefused = false;
    toolgate.resolve = async (...answer) => {
      await until(() => card.hasAttribute("closed"));
      return resolve(...answer).finally(() => {
        isRefused = true;
      });
    };
    button(card, "deny")?.click();
    host.end(card.suspension?.suspension ?? "", "approve", "eve");
    await until(() => isRefused);
    expect(text(card, "status")).toBe("Approved by eve.");
    expect(text(card, "error")).toBe("");
  });

  it("stays open if more approvals are needed", async () => {
    const card = await approval();
    host.instead = ({ method }) =>
      method === "POST"
        ? { status: 200, body: { ok: true, replayed: false, state: "open", votes_missing: 1 } }
        : undefined;
    button(card, "approve")?.click();
    await until(() => text(card, "status").includes("recorded"));
    expect(text(card, "status")).toBe("Your approval is recorded. 1 more is needed.");
    expect(card.hasAttribute("closed")).toBe(false);
  });

  it("offers nothing to principals who may not answer", async () => {
    const card = await approval({
      you: { may_answer: false, why_not: "it is your own call", voted: false, counts_again: false },
    });
    expect(text(card, "status")).toBe("it is your own call");
    button(card, "approve")?.click();
    press(article(card), "a");
    expect(bodies()).toEqual([]);
  });

  it("takes keys, except in text fields, repeats and shortcuts", async () => {
    const card = await approval();
    press(root(card).querySelector("input"), "a");
    press(article(card), "a", { repeat: true });
    press(article(card), "d", { ctrlKey: true });
    expect(bodies()).toEqual([]);
    press(article(card), "d");
    await until(() => bodies().length === 1);
    expect(bodies()[0]).toContain('"deny"');
  });

  it("takes two presses of a key if the risk is high", async () => {
    const card = await approval({ risk: "critical" });
    press(article(card), "a");
    expect(bodies()).toEqual([]);
    expect(text(card, "status")).toContain("Press a again");
    press(article(card), "a");
    await until(() => bodies().length === 1);
  });

  it("edits arguments as they were written, and shows the changes", async () => {
    const args = '{"to":"bob","n":12345678901234567890,"amount":5000}';
    const card = await approval({
      editable: ["amount"],
      arguments: JSON.parse(args),
      display: { arguments: args },
    });
    button(card, "edit")?.click();
    const field = root(card).querySelector<HTMLTextAreaElement>("textarea");
    expect(field?.value).toBe("5000");
    type(field, "50");
    const lines = [...root(card).querySelectorAll('[part="diff"] li')].map(({ textContent }) => textContent);
    expect(lines.slice(-3)).toEqual(['− removed:   "amount": 5000', '+ added:   "amount": 50', "  }"]);
    type(field, "{");
    await card.approve();
    expect(field?.getAttribute("aria-invalid")).toBe("true");
    expect(bodies()).toEqual([]);
    type(field, "50");
    host.instead = ({ method }) =>
      method === "POST"
        ? problem(422, "invalid", "no", { errors: [{ pointer: "/arguments/amount", message: "too little" }] })
        : undefined;
    await card.approve();
    expect(bodies()[0]).toContain('"arguments":{"to":"bob","n":12345678901234567890,"amount":50}');
    const described = field?.getAttribute("aria-describedby") ?? "";
    expect(root(card).getElementById(described)?.textContent).toBe("too little");
    press(field, "Escape");
    expect(card.isEditing).toBe(false);
    press(article(card), "e");
    expect(card.isEditing).toBe(true);
    press(field, "Escape");
    host.instead = undefined;
    await card.approve();
    expect(bodies()[1]).not.toContain("arguments");
  });

  it("gives a standing approval within the host's limits", async () => {
    const card = await approval({ standing: { max_ttl_ms: 3_600_000, max_uses: 10 } });
    const boxes = [
      ...root(card).querySelectorAll<HTMLInputElement>('[part="standing"] input[type=checkbox]'),
    ];
    const [minutes] = root(card).querySelectorAll<HTMLInputElement>("input[type=number]");
    boxes[0]?.click();
    boxes[1]?.click();
    type(minutes, "61");
    expect(await card.approve()).toBe(false);
    type(minutes, "60");
    await card.approve();
    expect(JSON.parse(bodies()[0] ?? "")).toMatchObject({
      standing: { ttl_ms: 3_600_000, uses: 5, pin: ["/amount"] },
    });
  });

  it("offers to delegate only to those who can", async () => {
    const offer = async (you: NonNullable<Suspension["you"]>) => {
      const card = await approval({ you });
      return root(card).querySelector<HTMLElement>('[part~="delegate"]')?.hidden;
    };
    const you = { may_answer: true, voted: false, counts_again: false };
    expect(await offer({ ...you, may_delegate: false })).toBe(true);
    expect(await offer({ ...you, may_delegate: true })).toBe(false);
  });

  it("delegates the decision", async () => {
    const card = await approval();
    host.instead = ({ path }) =>
      path.endsWith("/delegate") ? { status: 200, body: { ok: true } } : undefined;
    expect(await card.delegate(" ")).toBe(false);
    expect(text(card, "error")).toBe("Enter the principal who decides instead of you.");
    const handed = card.delegate("bob");
    expect(button(card, "hand")?.getAttribute("aria-disabled")).toBe("true");
    expect(button(card, "approve")?.getAttribute("aria-disabled")).toBe("true");
    expect(await card.delegate("bob")).toBe(false);
    expect(await handed).toBe(true);
    expect(text(card, "status")).toBe("You delegated this decision to bob.");
    expect(text(card, "error")).toBe("");
    expect(host.at("POST", /delegate/).map(({ body }) => body)).toEqual(['{"to":"bob"}']);
    clock.advance(500);
    host.instead = () => problem(403, "not-allowed", "bob is the caller");
    expect(await card.delegate("bob")).toBe(false);
    expect(text(card, "error")).toBe("bob is the caller");
    expect(text(card, "status")).toBe("");
    expect(button(card, "hand")?.getAttribute("aria-disabled")).toBe("false");
  });

  it("finds its suspension by id, and polls if streams are refused", async () => {
    const waiting = suspension();
    host.add(waiting);
    host.instead = ({ path }) =>
      path.endsWith("/events") ? problem(403, "not-allowed", "only one") : undefined;
    const card = new ToolgateApproval();
    card.setAttribute("suspension-id", waiting.suspension);
    card.toolgate = toolgate;
    document.body.append(card);
    await until(() => text(card, "title").includes("pay"));
    await until(() => clock.waits.includes(3000));
    host.end(waiting.suspension, "expired", "system");
    clock.advance(3000);
    await until(() => card.hasAttribute("closed"));
    expect(text(card, "status")).toBe("Expired: nobody answered in time.");
  });
});

describe("defaults", () => {
  it("are shown beside the arguments, and sent with no edit", async () => {
    const args = JSON.stringify({ to: "bob" });
    const card = await approval({
      arguments: { to: "bob" } as never,
      defaults: { "/memo": "none", "/options/depth": 3 } as never,
      display: { prompt: "Pay?", arguments: args, defaults: '{"/memo":"none","/options/depth":3}' },
    });
    expect(text(card, "defaults")).toBe(
      'The tool’s defaults, for what the arguments leave out{\n  "/memo": "none",\n  "/options/depth": 3\n}',
    );
    expect(text(card, "arguments")).not.toContain("memo");
    expect(text(await approval(), "defaults")).toBe("");
  });

  const asked = {
    editable: "all",
    arguments: { to: "ann" } as never,
    defaults: { "/amount": 100, "/note": "none" } as never,
    display: { arguments: '{"to":"ann"}', defaults: '{"/amount":100,"/note":"none"}' },
  } as const;
  const edit = { arguments: { to: "bob", amount: 5 } as never, defaults: { "/note": "none" } as never };
  const shownEdit = '{"to":"bob","amount":5}';
  const ofEdit = 'leave out{\n  "/note": "none"\n}';

  it("are those of the approved arguments after an edit", async () => {
    const card = await approval(asked);
    const waiting = card.suspension as Suspension;
    expect(text(card, "defaults")).toContain("/amount");
    const closed = { state: "approve", by: "bob", at: "2026-01-01T00:00:00Z", ...edit };
    const display = {
      ...asked.display,
      approved_arguments: shownEdit,
      approved_defaults: '{"/note":"none"}',
    };
    const end = (more: object, shown: object) => {
      card.suspension = {
        ...waiting,
        state: "approve",
        closed: { ...closed, ...more },
        display: shown,
      } as Suspension;
      return text(card, "defaults");
    };
    expect(end({}, display)).toBe(`The tool’s defaults, for what the approved arguments ${ofEdit}`);
    const { approved_defaults: _, ...without } = display;
    expect(end({ defaults: undefined }, without)).toBe("");
    expect(end({ defaults: undefined, defaults_unknown: true }, without)).toBe(
      "Nobody knows the tool’s defaults for what the approved arguments leave out: the component of the call is no longer loaded.",
    );
    expect(end({ arguments: undefined }, asked.display)).toContain("/amount");
  });

  it("are those of each edit that somebody approved", async () => {
    const ofVote = (card: HTMLElement) =>
      root(card).querySelector('[part~="edit-of"] [part~="edit-defaults"]')?.textContent;
    const vote = { by: "ann", at: "x", binding: "sha256:ee", ...edit, display: shownEdit };
    const card = await approval({ ...asked, votes: [{ ...vote, defaults_display: '{"/note":"none"}' }] });
    expect(ofVote(card)).toBe('The tool’s defaults, for what this edit leaves out{\n  "/note": "none"\n}');
    expect(text(card, "defaults")).toContain("for what the arguments as submitted leave out");
    const unknown = await approval({
      ...asked,
      votes: [{ ...vote, defaults: undefined, defaults_unknown: true }],
    });
    expect(ofVote(unknown)).toContain("the component of the call is no longer loaded");
  });

  it("follow an edit before it is approved", async () => {
    const card = await approval(asked);
    let found: object = { defaults: { "/note": "none" }, display: '{"/note":"none"}' };
    host.instead = ({ path }) => (path.endsWith("/defaults") ? { status: 200, body: found } : undefined);
    button(card, "edit")?.click();
    const shown = () => root(card).querySelector('[part~="editor"] [part~="edit-defaults"]')?.textContent;
    expect(shown()).toBe("");
    const input = root(card).querySelector("textarea");
    type(input, '{"to":"ann","amount":');
    type(input, '{"to":"ann","amount":5}');
    expect(shown()).toBe("Loading the tool’s defaults for this edit …");
    await until(() => shown()?.includes("leaves out") === true);
    expect(shown()).toBe('The tool’s defaults, for what this edit leaves out{\n  "/note": "none"\n}');
    expect(host.at("POST", /defaults/).map(({ body }) => body)).toEqual([
      '{"arguments":{"to":"ann","amount":5}}',
    ]);
    found = {};
    type(input, '{"to":"ann","amount":5,"note":"x"}');
    await until(() => shown() === "");
    host.instead = ({ path }) =>
      path.endsWith("/defaults") ? problem(503, "store-failed", "no disk") : undefined;
    type(input, '{"to":"ann","amount":6}');
    await until(() => shown() === "The tool’s defaults for this edit are not known: no disk");
    type(input, '{"to":"ann"}');
    expect(shown()).toBe("");
  });

  it("of a newer edit replace those of an older one", async () => {
    const card = await approval(asked);
    host.instead = ({ path, body }) =>
      path.endsWith("/defaults")
        ? { status: 200, body: { display: body.includes('"amount":1') ? '{"/old":1}' : '{"/new":2}' } }
        : undefined;
    button(card, "edit")?.click();
    const input = root(card).querySelector("textarea");
    for (const amount of [1, 11, 111, 2]) type(input, `{"to":"ann","amount":${amount}}`);
    await until(() => text(card, "editor").includes("/new"));
    expect(text(card, "editor")).not.toContain("/old");
    expect(host.at("POST", /defaults/).length).toBe(2);
  });
});
