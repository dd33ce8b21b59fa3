// Two people answer one card: one answer is accepted, and everybody sees whose.
import { suspensionOf } from "../src/client";
import { approvals, button, expect, LINGERS, stay, test } from "../src/test";

test.describe("one card in two browsers", () => {
  test("the first answer is accepted, and the second page says whose", async ({ start, enter, browser }) => {
    const host = await start({ plugins: ["lab"] });
    const agent = host.token("agent", ["caller"]);
    const [root, alice, bob] = [
      host.token("root", ["admin"]),
      host.token("alice", ["approver"]),
      host.token("bob", ["approver"]),
    ];
    const other = await browser.browserType().launch();
    const pages = [await enter(host, alice), await enter(host, bob, { in: other })] as const;
    const turn = await agent.call("race", "gated_echo", { value: "both want this" });
    for (const page of pages) await page.goto(`/suspensions/${suspensionOf(turn)}`);
    const [yes, no] = [approvals(pages[0]), approvals(pages[1])];

    // Both answers are given before either is sent.
    let [given, go] = [0, () => {}];
    const both = new Promise<void>((resolve) => {
      go = resolve;
    });
    for (const page of pages) {
      await page.route("**/resolve", async (route) => {
        given += 1;
        if (given === pages.length) go();
        await both;
        await route.continue();
      });
    }
    await Promise.all([button(yes, "Approve").click(), button(no, "Deny").click()]);

    for (const card of [yes, no]) {
      await expect(card.getByRole("status")).toHaveText(/^(Approved by alice|Denied by bob)\.$/);
      await expect(card).toHaveAttribute("closed");
      await expect(button(card, "Approve")).toBeDisabled();
      await expect(button(card, "Deny")).toBeDisabled();
    }
    const answers = await root.answers("race");
    expect(answers).toHaveLength(1);
    const isAlice = answers[0]?.by === "alice";
    expect(answers[0]).toEqual(
      isAlice
        ? { by: "alice", action: "approve", via: "console" }
        : { by: "bob", action: "deny", via: "console" },
    );
    for (const card of [yes, no])
      await expect(card.getByRole("status")).toHaveText(isAlice ? "Approved by alice." : "Denied by bob.");
    expect((await agent.ended(turn)).outcome).toBe(isAlice ? "ok" : "denied");
    await other.close();
  });

  test("a watching page sees the card close and disables it", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const agent = host.token("agent", ["caller"]);
    const page = await enter(host, host.token("alice", ["approver"]));
    const bob = host.token("bob", ["approver"]);
    await page.clock.install();
    const turn = await agent.call("watch", "gated_echo", { value: 1 });
    const card = approvals(page);
    await stay(page);
    await expect(button(card, "Approve")).toBeEnabled();
    const answer = { decision: "deny", comment: "not today" };
    await bob.send("POST", `/v1/suspensions/${suspensionOf(turn)}/resolve`, answer);
    await expect(card.getByRole("status")).toHaveText("Denied by bob.");
    await expect(button(card, "Approve")).toBeDisabled();
    await card.press("a");
    expect((await agent.ended(turn)).outcome).toBe("denied");
    // Closed cards disappear.
    await page.mouse.move(0, 0);
    await page.clock.fastForward(LINGERS);
    await expect(page.getByText("Nothing is waiting for you.")).toBeVisible();
    await expect(card).toHaveCount(0);
  });

  test("a page without events learns of the end from the refusal", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const [agent, root] = [host.token("agent", ["caller"]), host.token("root", ["admin"])];
    const bob = host.token("bob", ["approver"]);
    const page = await enter(host, host.token("alice", ["approver"]));
    const turn = await agent.call("late", "gated_echo", { value: 1 });
    const suspension = suspensionOf(turn);
    await page.route("**/v1/pending/events*", (route) => route.abort());
    await page.goto(`/suspensions/${suspension}`);
    const card = approvals(page);
    // The page's answer is sent after the other one has arrived.
    await page.route("**/resolve", async (route) => {
      await bob.send("POST", `/v1/suspensions/${suspension}/resolve`, { decision: "deny" });
      await route.continue();
    });
    const refusal = page.waitForResponse((response) => response.url().endsWith(`${suspension}/resolve`));
    await button(card, "Approve").click();
    expect((await refusal).status()).toBe(409);
    await expect(card.getByRole("status")).toHaveText("Denied by bob.");
    expect((await agent.ended(turn)).outcome).toBe("denied");
    expect(await root.answers("late")).toEqual([{ by: "bob", action: "deny", via: "api" }]);
  });
});
