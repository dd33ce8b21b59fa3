// An expired card says so, and takes no answer.
import { fixture } from "../src/components";
import { approvals, button, expect, LINGERS, said, stay, test } from "../src/test";

test("a visible card expires", async ({ start, enter }) => {
  const tool = { name: "brief", approval: "requires-approval", options: { expires_ms: 2000 } } as const;
  const host = await start({ components: { brief: fixture([tool]) } });
  const [agent, root] = [host.token("agent", ["caller"]), host.token("root", ["admin"])];
  const page = await enter(host, host.token("alice", ["approver"]));
  await page.clock.install();
  const was = await said(page);
  const turn = await agent.call("brief", "brief", {});
  const card = approvals(page);
  await stay(page);
  await expect(card.getByRole("status")).toHaveText("Expired: nobody answered in time.");
  const [first] = await was.jsonValue();
  expect(first).toMatch(/Open for \d s, until .*; then the call ends without running/);
  expect(first).not.toContain("Expired");
  await expect(button(card, "Approve")).toBeDisabled();
  await card.press("a");
  expect((await agent.ended(turn)).outcome).toBe("expired");
  expect(await root.answers("brief")).toEqual([{ by: "system", action: "expired" }]);
  await page.mouse.move(0, 0);
  await page.clock.fastForward(LINGERS);
  await expect(page.getByText("Nothing is waiting for you.")).toBeVisible();
  // The suspension's page says the same.
  await page.goto(`/suspensions/${turn.calls[0]?.suspension}`);
  await expect(card.getByRole("status")).toHaveText("Expired: nobody answered in time.");
  await expect(button(card, "Approve")).toBeDisabled();
});
