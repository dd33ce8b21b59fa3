// Hidden pages hold no connection, because a browser has only six to one host over all tabs.
import type { Page } from "@playwright/test";
import { approvals, button, expect, test } from "../src/test";

/** Shows or hides the page. A headless browser does not report it by itself. */
function look(page: Page, state: "visible" | "hidden"): Promise<void> {
  return page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

/** The streams that a page holds. */
function streams(page: Page): Set<unknown> {
  const open = new Set<unknown>();
  page.on("request", (request) => new URL(request.url()).pathname.endsWith("/events") && open.add(request));
  page.on("requestfinished", (request) => open.delete(request));
  page.on("requestfailed", (request) => open.delete(request));
  return open;
}

test("hidden pages hold no stream, and catch up when visible", async ({ start, enter }) => {
  const host = await start({
    plugins: ["ledger"],
    tables: '[plugin.ledger]\ncomponent = "any"\ngrants.keyvalue = true\n',
  });
  const agent = host.token("agent", ["caller"]);
  const page = await enter(host, host.token("alice", ["admin", "approver"]));
  for (const account of ["a", "b"])
    await agent.call("money", "ledger_open", { account, opening_balance: 5000 });
  const turn = await agent.call("money", "ledger_transfer", { from: "a", to: "b", amount_cents: 4000 });

  // More tabs than connections: an inbox, a conversation and the plugins, twice.
  const tabs = [];
  for (const path of ["/", "/conversations/money", "/plugins", "/", "/conversations/money", "/plugins"]) {
    const tab = await page.context().newPage();
    const open = streams(tab);
    await tab.goto(path);
    await expect(tab.getByRole("heading", { level: 1 })).toBeVisible();
    await expect.poll(() => open.size).toBe(path === "/" ? 1 : 2);
    // The test needs the card below, and a hidden page may not load it.
    if (path === "/") await expect(approvals(tab)).toBeVisible();
    await look(tab, "hidden");
    await expect.poll(() => open.size).toBe(0);
    tabs.push({ tab, open });
  }
  const [first] = tabs;
  if (first === undefined) throw new Error("there is no tab");
  await expect(approvals(first.tab)).not.toHaveAttribute("closed");

  await button(approvals(page), "Approve").click();
  await expect(approvals(page)).toHaveAttribute("closed");
  expect(await agent.ended(turn)).toMatchObject({ outcome: "ok" });

  await look(first.tab, "visible");
  await expect(approvals(first.tab).getByRole("status")).toHaveText("Approved by alice.");
  expect(first.open.size).toBe(1);
});
