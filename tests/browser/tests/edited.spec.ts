// After an edit, everybody sees the approved arguments beside the submitted ones.
import { suspensionOf } from "../src/client";
import { fixture } from "../src/components";
import { approvals, button, expect, stay, test } from "../src/test";

test("a card shows approved arguments beside submitted ones", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"] });
  const agent = host.token("agent", ["caller"]);
  const alice = await enter(host, host.token("alice", ["approver"]));
  const bob = await enter(host, host.token("bob", ["approver"]));
  const turn = await agent.call("edited", "gated_echo", { value: 5000 });
  for (const page of [alice, bob]) {
    await expect(approvals(page)).toContainText("Arguments, complete");
    await stay(page);
  }
  const card = approvals(alice);
  await button(card, "Edit arguments").click();
  await card.getByLabel("Arguments, as JSON").fill('{"value": 50.0}');
  await button(card, "Approve as edited").click();

  const address = `/suspensions/${suspensionOf(turn)}`;
  const pages = [alice, bob];
  for (const moved of [false, true]) {
    for (const page of pages) {
      if (moved) await page.goto(address);
      const shown = approvals(page);
      await expect(shown.getByRole("status")).toHaveText("Approved by alice, with edited arguments.");
      await expect(shown.locator("[part=approved] pre")).toHaveText('{ "value": 50.0 }');
      await expect(shown.locator("[part=submitted] pre")).toHaveText('{ "value": 5000 }');
      const change = shown.getByRole("list", { name: "Changes by the approver" });
      await expect(change.getByRole("listitem")).toHaveText([
        "{",
        '− removed:   "value": 5000',
        '+ added:   "value": 50.0',
        "}",
      ]);
    }
  }
  expect((await agent.ended(turn)).outcome).toBe("ok");
  await bob.goto("/conversations/edited");
  await bob.getByRole("button", { name: "Approved arguments, and as submitted" }).click();
  await expect(bob.getByRole("group", { name: "Approved arguments", exact: true })).toContainText("50");
  await expect(bob.getByRole("group", { name: "Arguments as submitted" })).toContainText("5000");
});

for (const [decision, label] of [
  ["approve", "Approved arguments, as submitted"],
  ["deny", "Arguments as submitted"],
] as const) {
  test(`a card without an edit says after ${decision}: ${label}`, async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const agent = host.token("agent", ["caller"]);
    const alice = host.token("alice", ["approver"]);
    const page = await enter(host, alice);
    const turn = await agent.call("plain", "gated_echo", { value: 5000 });
    await expect(approvals(page)).toHaveCount(1);
    await stay(page);
    await alice.send("POST", `/v1/suspensions/${suspensionOf(turn)}/resolve`, { decision });
    await expect(approvals(page)).toHaveAttribute("closed");
    await expect(approvals(page).locator("[part=arguments] .label")).toHaveText([label]);
  });
}

test("a card shows the defaults of what the arguments leave out", async ({ start, enter }) => {
  const rule = '[[policy]]\ntools = "text_stats"\nrule = "ask"\n';
  const host = await start({ plugins: ["textkit"], tables: rule });
  const agent = host.token("agent", ["caller"]);
  const page = await enter(host, host.token("alice", ["approver"]));
  const turn = await agent.call("defaults", "text_stats", { text: "alpha" });
  await agent.call("defaults", "text_stats", { text: "omega", top: 3 });
  const card = approvals(page, "alpha");
  const defaults = card.locator("[part=defaults]");
  await expect(approvals(page, "omega").locator("[part=arguments]")).toHaveCount(1);
  await expect(approvals(page, "omega").locator("[part=defaults]")).toBeHidden();
  await stay(page);
  for (const state of ["open", "closed"]) {
    if (state === "closed") {
      await button(card, "Approve").click();
      await expect(card.getByRole("status")).toContainText("Approved by alice");
    }
    await expect(card.locator("[part=arguments] pre")).toHaveText('{ "text": "alpha" }');
    await expect(defaults.locator(".label")).toHaveText(
      "The tool’s defaults, for what the arguments leave out",
    );
    await expect(defaults.locator("pre")).toHaveText('{ "/top": 10 }');
  }
  expect((await agent.ended(turn)).outcome).toBe("ok");
});

test("approvers see the defaults of an edit", async ({ start, enter }) => {
  const parameters = { type: "object", properties: { to: {}, amount: { default: 100 } } };
  const options = { editable: "all" };
  const pay = { name: "pay", approval: "requires-approval", parameters, options } as const;
  const rule = '[[policy]]\ntools = "pay"\nrule = "ask"\nneeds = [{ quorum = 2 }]\n';
  const host = await start({ components: { bank: fixture([pay]) }, tables: rule });
  const agent = host.token("agent", ["caller"]);
  const alice = await enter(host, host.token("alice", ["approver"]));
  const bob = await enter(host, host.token("bob", ["approver"]));
  const turn = await agent.call("defaults", "pay", { to: "ann", amount: 5 });
  const card = approvals(alice);
  await stay(alice);
  await expect(card.locator("[part=defaults]")).toBeHidden();
  await button(card, "Edit arguments").click();
  await card.getByLabel("Arguments, as JSON").fill('{"to": "ann"}');
  await expect(card.locator("[part=editor] [part=edit-defaults] pre")).toHaveText('{ "/amount": 100 }');
  await button(card, "Approve as edited").click();
  for (const page of [alice, bob]) {
    const ofVote = approvals(page).locator("[part=edit-of] [part=edit-defaults]");
    await expect(ofVote).toHaveText('The tool’s defaults, for what this edit leaves out{ "/amount": 100 }');
  }
  await stay(bob);
  await button(approvals(bob), "Approve as alice edited").click();
  for (const page of [alice, bob]) {
    const applied = approvals(page).locator("[part=defaults]");
    await expect(applied).toHaveText(
      'The tool’s defaults, for what the approved arguments leave out{ "/amount": 100 }',
    );
  }
  await agent.ended(turn);
});
