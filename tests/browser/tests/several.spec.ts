// Standing approvals, batches, delegation and escalation.
import { suspensionOf } from "../src/client";
import { fixture } from "../src/components";
import { approvals, button, expect, said, stay, test } from "../src/test";

const NEEDS = `
[[policy]]
name = "finance-decides"
tools = "gated_echo"
rule = "ask"
[[policy.needs]]
who = ["group:finance"]
`;

test("a standing approval is given, used, seen and revoked", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"] });
  const [agent, root] = [host.token("agent", ["caller"]), host.token("root", ["admin"])];
  const page = await enter(host, host.token("alice", ["approver"]));
  const first = await agent.call("standing", "gated_echo", { value: "rent" });
  const card = approvals(page);
  await card.getByRole("checkbox", { name: /^Also approve later calls of gated_echo/ }).check();
  await card.getByLabel(/^Minutes/).fill("10");
  await card.getByLabel(/^Uses/).fill("2");
  await stay(page);
  await button(card, "Approve").click();
  await expect(card.getByRole("status")).toHaveText("Approved by alice.");
  expect((await agent.ended(first)).outcome).toBe("ok");

  // The same call runs without asking. A call with another argument asks.
  const second = await agent.call("standing", "gated_echo", { value: "rent" });
  expect((await agent.ended(second)).outcome).toBe("ok");
  const other = await agent.call("standing", "gated_echo", { value: "a boat" });
  await expect(approvals(page, "a boat")).toBeVisible();

  await page.getByRole("link", { name: "Standing" }).click();
  const standing = page.getByRole("listitem").filter({ hasText: "gated_echo" });
  await expect(standing).toContainText("active");
  await expect(standing).toContainText("1 of 2");
  await expect(standing).toContainText("all arguments");
  await expect(standing).toContainText("rent");
  await standing.getByRole("button", { name: "Revoke" }).click();
  const dialog = page.getByRole("alertdialog", { name: "Revoke the approval of gated_echo?" });
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await expect(standing).toContainText("revoked");
  await expect(standing).toContainText("alice");
  await expect(standing.getByRole("button", { name: "Revoke" })).toHaveCount(0);

  const third = await agent.call("standing", "gated_echo", { value: "rent" });
  await page.getByRole("link", { name: "Inbox" }).click();
  await expect(approvals(page, "rent")).toBeVisible();
  for (const turn of [other, third])
    await root.send("POST", `/v1/suspensions/${suspensionOf(turn)}/resolve`, { decision: "deny" });
  expect((await agent.ended(third)).outcome).toBe("denied");
});

test("a batch answers several cards, and each shows its result", async ({ start, enter }) => {
  const edited = { name: "edited", approval: "requires-approval", options: { editable: "all" } } as const;
  const host = await start({ plugins: ["lab"], components: { words: fixture([edited]) } });
  const [agent, bob] = [host.token("agent", ["caller"]), host.token("bob", ["approver"])];
  const page = await enter(host, host.token("alice", ["approver"]));
  const turns = {
    alder: await agent.call("batch", "gated_echo", { value: "alder" }),
    birch: await agent.call("batch", "gated_echo", { value: "birch" }),
    cedar: await agent.call("batch", "gated_echo", { value: "cedar" }),
    damson: await agent.call("batch", "edited", { value: "damson" }),
    elder: await agent.call("batch", "gated_echo", { value: "elder" }),
  };
  const card = (text: string) => approvals(page, text);
  const item = (text: string) => page.locator("toolgate-inbox [part~=item]").filter({ has: card(text) });
  for (const name of ["alder", "birch", "cedar", "damson"])
    await item(name).getByRole("checkbox").first().check();
  await stay(page);
  await button(card("damson"), "Edit arguments").click();

  // Somebody else answers one of the cards during the request.
  await page.route("**/v1/pending/resolve", async (route) => {
    await bob.send("POST", `/v1/suspensions/${suspensionOf(turns.birch)}/resolve`, { decision: "deny" });
    await route.continue();
  });
  const answered = page.waitForResponse((response) => response.url().endsWith("/v1/pending/resolve"));
  await page.getByRole("button", { name: "Approve selected (4)" }).click();
  const { answers } = (await (await answered).json()) as { answers: { status: number }[] };
  expect(answers.map(({ status }) => status)).toEqual([200, 409, 200]);

  await expect(page.locator("toolgate-inbox [part~=notice]")).toHaveText("2 approved, 1 not: see the cards.");
  await expect(card("alder").getByRole("status")).toHaveText("Approved by alice.");
  await expect(card("birch").getByRole("status")).toHaveText("Denied by bob.");
  await expect(card("cedar").getByRole("status")).toHaveText("Approved by alice.");
  await expect(card("damson").getByRole("alert")).toHaveText("Skipped: its arguments are being edited.");
  await expect(card("damson")).not.toHaveAttribute("closed");
  await expect(card("elder")).not.toHaveAttribute("closed");
  await expect(button(card("elder"), "Approve")).toBeEnabled();
  for (const [name, outcome] of [
    ["alder", "ok"],
    ["birch", "denied"],
    ["cedar", "ok"],
  ] as const)
    expect((await agent.ended(turns[name])).outcome, name).toBe(outcome);
});

test("a decision is delegated", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"], tables: NEEDS });
  const agent = host.token("agent", ["caller"]);
  const alice = await enter(host, host.token("alice", ["approver"], ["finance"]));
  const dave = await enter(host, host.token("dave", ["approver"]));
  const turn = await agent.call("handed", "gated_echo", { value: 1 });
  const [hers, his] = [approvals(alice), approvals(dave)];
  await expect(button(his, "Approve")).toBeDisabled();

  // A delegation to the caller is refused, and the card says so.
  await hers.getByText("Delegate this decision").click();
  await hers.getByLabel("Principal").fill("agent");
  await hers.getByRole("button", { name: "Delegate" }).click();
  await expect(hers.getByRole("alert")).toContainText("caller");

  await hers.getByLabel("Comment, kept with the answer").fill("on leave");
  await hers.getByLabel("Principal").fill("dave");
  await hers.getByRole("button", { name: "Delegate" }).click();
  for (const card of [hers, his]) await expect(card).toContainText("alice delegated to dave: “on leave”");
  await expect(button(hers, "Approve")).toBeDisabled();
  await expect(button(his, "Approve")).toBeEnabled();
  await stay(alice);
  await stay(dave);
  await button(his, "Approve").click();
  for (const card of [hers, his]) await expect(card.getByRole("status")).toHaveText("Approved by dave.");
  expect((await agent.ended(turn)).outcome).toBe("ok");
});

test("escalation lets others answer, and their cards update", async ({ start, enter }) => {
  const host = await start({
    plugins: ["lab"],
    tables: `${NEEDS}escalate = { after_ms = 1500, to = ["group:board"] }\n`,
  });
  const agent = host.token("agent", ["caller"]);
  const carol = await enter(host, host.token("carol", ["approver"], ["board"]));
  const alice = await enter(host, host.token("alice", ["approver"], ["finance"]));
  const was = await said(carol);
  const turn = await agent.call("wider", "gated_echo", { value: 1 });
  const [hers, others] = [approvals(carol), approvals(alice)];
  for (const card of [hers, others])
    await expect(card).toContainText("0 of 1 from group finance; now also group board");
  await expect(button(others, "Approve")).toBeEnabled();
  await expect(button(hers, "Approve")).toBeEnabled();
  const [first] = await was.jsonValue();
  expect(first).toMatch(/0 of 1 from group finance; from .* also group board/);
  expect(first).toContain("you are not among the approvers that the operator's rule names");
  await stay(carol);
  await stay(alice);
  await button(hers, "Approve").click();
  for (const card of [hers, others]) await expect(card.getByRole("status")).toHaveText("Approved by carol.");
  expect((await agent.ended(turn)).outcome).toBe("ok");
});
