// Two approvers must approve the same arguments. One denial ends it.
import { type Client, suspensionOf } from "../src/client";
import { fixture } from "../src/components";
import type { Host } from "../src/host";
import { approvals, button, expect, stay, test } from "../src/test";

const TABLES = `
[[policy]]
name = "two-of-finance"
tools = "gated_echo"
rule = "ask"
reason = "two people of finance look at this"
[[policy.needs]]
who = ["group:finance"]
quorum = 2
`;

function people(host: Host): Record<"agent" | "root" | "alice" | "bob" | "dave", Client> {
  return {
    agent: host.token("agent", ["caller"]),
    root: host.token("root", ["admin"]),
    alice: host.token("alice", ["approver"], ["finance"]),
    bob: host.token("bob", ["approver"], ["finance"]),
    dave: host.token("dave", ["approver"]),
  };
}

test.describe("a quorum of two", () => {
  test("the first vote is shown to the others, the second approves", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"], tables: TABLES });
    const { agent, root, alice, bob, dave } = people(host);
    const pages = {
      alice: await enter(host, alice),
      bob: await enter(host, bob),
      dave: await enter(host, dave),
    };
    const turn = await agent.call("pay", "gated_echo", { value: 5000 });
    const cards = { alice: approvals(pages.alice), bob: approvals(pages.bob), dave: approvals(pages.dave) };
    for (const card of Object.values(cards)) {
      await expect(card).toContainText("two people of finance look at this (rule two-of-finance)");
      await expect(card).toContainText("0 of 2 from group finance");
    }
    await expect(button(cards.dave, "Approve")).toBeDisabled();
    await expect(cards.dave.getByRole("status")).not.toBeEmpty();

    await cards.alice.getByLabel("Comment, kept with the answer").fill("looked at it");
    await button(cards.alice, "Approve").click();
    await expect(cards.alice.getByRole("status")).toHaveText("You have approved. More approvals are needed.");
    for (const card of Object.values(cards)) {
      await expect(card).toContainText("1 of 2 from group finance");
      await expect(card).toContainText("alice approved: “looked at it”");
    }
    // One principal has one vote, also after a reload.
    await pages.alice.reload();
    await expect(cards.alice.getByRole("status")).toHaveText("You have approved. More approvals are needed.");
    await expect(button(cards.alice, "Approve")).toBeDisabled();

    for (const page of Object.values(pages)) await stay(page);
    await button(cards.bob, "Approve").click();
    for (const card of Object.values(cards)) {
      await expect(card.getByRole("status")).toHaveText("Approved by alice and bob.");
    }
    expect((await agent.ended(turn)).outcome).toBe("ok");
    expect(await root.answers("pay")).toEqual([{ by: "bob", action: "approve", via: "console" }]);

    // The inbox lists it among what has ended, also for the first of the two.
    await pages.dave.getByRole("radio", { name: "Ended" }).click();
    const list = pages.dave.getByRole("list", { name: "Ended, newest first" });
    await expect(list).toContainText("approve by alice and bob");
    await pages.dave.getByText("Filter", { exact: true }).first().click();
    await pages.dave.getByLabel("Answered by").fill("dave");
    await pages.dave.getByRole("button", { name: "Filter", exact: true }).click();
    await expect(pages.dave.getByText("Nothing matches")).toBeVisible();
    await pages.dave.getByLabel("Answered by").fill("alice");
    await pages.dave.getByRole("button", { name: "Filter", exact: true }).click();
    await list.getByRole("link", { name: "gated_echo" }).click();
    await expect(pages.dave.getByText("approve by alice and bob")).toBeVisible();
  });

  test("a denial is a veto after an approval", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"], tables: TABLES });
    const { agent, alice, bob } = people(host);
    const pages = [await enter(host, alice), await enter(host, bob)] as const;
    const turn = await agent.call("veto", "gated_echo", { value: 5000 });
    const cards = [approvals(pages[0]), approvals(pages[1])] as const;
    await button(cards[0], "Approve").click();
    await expect(cards[1]).toContainText("1 of 2 from group finance");
    for (const page of pages) await stay(page);
    await button(cards[1], "Deny").click();
    for (const card of cards) await expect(card.getByRole("status")).toHaveText("Denied by bob.");
    expect((await agent.ended(turn)).outcome).toBe("denied");
  });

  test("others see an edit as changes and can approve exactly that", async ({ start, enter }) => {
    const pay = {
      name: "pay",
      approval: "requires-approval",
      parameters: { type: "object", properties: { amount: {}, to: {} } },
      options: { editable: ["amount", "to"] },
    } as const;
    const tables = TABLES.replaceAll("gated_echo", "pay");
    const host = await start({ components: { words: fixture([pay]) }, tables });
    const { agent, alice, bob, dave } = people(host);
    const pages = {
      alice: await enter(host, alice),
      bob: await enter(host, bob),
      dave: await enter(host, dave),
    };
    // A number that JavaScript cannot hold exactly, and a name with lookalike letters.
    const args = { amount: 5000, to: "bob", exact: 0 };
    const text = JSON.stringify(args).replace('"exact":0', '"exact":12345678901234567890.10');
    const changed = [
      "{",
      '− removed:   "amount": 5000,',
      '− removed:   "to": "bob",',
      '+ added:   "amount": 50.0,',
      '+ added:   "to": "b\\u043eb\\u202e",',
      '"exact": 12345678901234567890.10',
      "}",
    ];
    const turn = await agent.callText("edits", "pay", text);
    const cards = { alice: approvals(pages.alice), bob: approvals(pages.bob), dave: approvals(pages.dave) };
    await stay(pages.alice);
    await button(cards.alice, "Edit arguments").click();
    await cards.alice.getByLabel("amount, as JSON").fill(" 50.0 ");
    await cards.alice.getByLabel("to, as JSON").fill('"b\u043eb\u202e"');
    await button(cards.alice, "Approve as edited").click();
    await expect(cards.alice.getByRole("status")).toHaveText(
      "You have approved with edited arguments. More approvals are needed.",
    );
    await expect(button(cards.alice, "Approve as alice edited")).toBeDisabled();
    await expect(cards.alice).toContainText("You have approved this edit.");
    await expect(button(cards.alice, "Approve as submitted instead")).toBeEnabled();

    for (const card of [cards.bob, cards.dave]) {
      await expect(card).toContainText("alice approved, with edited arguments");
      const change = card.getByRole("list", { name: "Changes by alice" });
      await expect(change.getByRole("listitem")).toHaveText(changed);
    }
    await expect(button(cards.dave, "Approve as alice edited")).toBeDisabled();
    await expect(button(cards.dave, "Approve as alice edited")).toHaveAccessibleDescription(/.+/);

    // The other approver approves the submitted arguments, which is another vote.
    await stay(pages.bob);
    await button(cards.bob, "Approve").click();
    await expect(cards.bob.getByRole("status")).toHaveText("You have approved. More approvals are needed.");
    await expect(cards.bob).toContainText("Only approvals of the same arguments are added up.");
    expect((await bob.send<{ state: string }>("GET", `/v1/suspensions/${suspensionOf(turn)}`)).state).toBe(
      "open",
    );
    await button(cards.bob, "Approve as alice edited").click();
    for (const card of Object.values(cards))
      await expect(card.getByRole("status")).toHaveText("Approved by alice and bob, with edited arguments.");
    const ended = await agent.ended(turn);
    expect(ended.outcome).toBe("ok");
    const closed = await agent.text(`/v1/suspensions/${suspensionOf(turn)}`);
    expect(closed).toContain('"exact":12345678901234567890.10');
    expect(JSON.parse(closed).closed.arguments).toMatchObject({ amount: 50, to: "b\u043eb\u202e" });

    // The timeline shows the same edit for both approvers.
    await pages.bob.goto("/conversations/edits");
    for (const name of ["alice", "bob"]) {
      const change = pages.bob.getByRole("list", { name: `Changes by ${name}` });
      await expect(change.getByRole("listitem")).toHaveText(changed);
    }
  });
});
