// The host is killed and restarted while pages are open. The pages recover by themselves.
import { approvals, button, expect, LINGERS, stay, test } from "../src/test";

const AWAY = "The host does not answer. These cards may be out of date. Trying again …";

test.describe("the host is killed and started again with the page open", () => {
  test("suspensions and sessions survive, and answers are accepted", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const [agent, root] = [host.token("agent", ["caller"]), host.token("root", ["admin"])];
    const page = await enter(host, host.token("alice", ["approver"]));
    const before = await agent.call("kill", "gated_echo", { value: "asked before" });
    const card = approvals(page, "asked before");
    await expect(button(card, "Approve")).toBeEnabled();

    await host.kill();
    await expect(page.getByText(AWAY)).toBeVisible();
    // A failed answer is reported, and the card still takes one.
    await button(card, "Approve").click();
    await expect(card.getByRole("alert")).not.toBeEmpty();
    await expect(card).not.toHaveAttribute("closed");

    await host.start();
    await expect(page.getByText(AWAY)).toBeHidden();
    await expect(page.locator("toolgate-approval")).toHaveCount(1);
    const after = await agent.call("kill", "gated_echo", { value: "asked afterwards" });
    await expect(approvals(page, "asked afterwards")).toBeVisible();
    await stay(page);
    await button(card, "Approve").click();
    await expect(card.getByRole("status")).toHaveText("Approved by alice.");
    expect((await agent.ended(before)).outcome).toBe("ok");
    await button(approvals(page, "asked afterwards"), "Deny").click();
    expect((await agent.ended(after)).outcome).toBe("denied");
    expect(await root.answers("kill")).toEqual([
      { by: "alice", action: "approve", via: "console" },
      { by: "alice", action: "deny", via: "console" },
    ]);
  });

  test("a card that was answered during the outage disappears", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const [agent, bob] = [host.token("agent", ["caller"]), host.token("bob", ["approver"])];
    const page = await enter(host, host.token("alice", ["approver"]));
    await page.clock.install();
    const turn = await agent.call("gone", "gated_echo", { value: 1 });
    await stay(page);
    await expect(button(approvals(page), "Approve")).toBeEnabled();
    await host.kill();
    await expect(page.getByText(AWAY)).toBeVisible();
    // The page gets no event before the answer.
    await page.context().setOffline(true);
    await host.start();
    await bob.send("POST", `/v1/suspensions/${turn.calls[0]?.suspension}/resolve`, { decision: "deny" });
    await page.context().setOffline(false);
    await expect(page.getByText(AWAY)).toBeHidden();
    await expect(approvals(page).getByRole("status")).toHaveText("Denied by bob.");
    await page.mouse.move(0, 0);
    await page.clock.fastForward(LINGERS);
    await expect(page.getByText("Nothing is waiting for you.")).toBeVisible();
  });

  test("a timeline resumes without gap or duplicate", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const agent = host.token("agent", ["caller"]);
    const page = await enter(host, host.token("alice", ["approver"]));
    await agent.call("story", "echo", { value: "before the kill" });
    await page.goto("/conversations/story");
    await expect(page.getByText("live", { exact: true })).toBeVisible();
    await expect(page.locator("ol.turns > li")).toHaveCount(1);
    await host.kill();
    await expect(page.getByText("connecting again", { exact: true })).toBeVisible();
    await host.start();
    await agent.call("story", "echo", { value: "after the kill" });
    await expect(page.getByText("live", { exact: true })).toBeVisible();
    await expect(page.locator("ol.turns > li")).toHaveCount(2);
    for (const word of ["before the kill", "after the kill"]) {
      const turn = page.locator("ol.turns > li").filter({ hasText: word });
      await expect(turn).toHaveCount(1);
      await expect(turn.getByText("ok", { exact: true })).toHaveCount(1);
    }
  });
});
