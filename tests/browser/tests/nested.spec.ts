// The nested turns of a call in the timeline.
import type { Page } from "@playwright/test";
import { examine } from "../src/axe";
import { fixture, illegal } from "../src/components";
import { expect, test } from "../src/test";

const TABLES = `
[plugin.program]
component = "any"
grants.keyvalue = true
grants.config = {}
grants.http = [{ url = "https://api.example.com/" }]
grants.calls = ["note", "pay", "run"]
`;

const HOSTILE = `<img src=x onerror="window.pwned=1">\u202e`;

const calling = (...calls: object[]) => ({ program: [{ do: "call", calls }] });

/** Opens the timeline, and in it the tree. */
async function open(page: Page): Promise<void> {
  await page.goto("/conversations/tree");
  for (const name of ["1 nested call", "2 nested calls"])
    await page.getByRole("button", { name, exact: true }).click();
}

/** An outer call contains the inner ones, and comes first. */
const call = (page: Page, tool: string) =>
  page
    .getByRole("listitem")
    .filter({ has: page.getByRole("heading", { name: tool, exact: true }) })
    .last();

const state = (page: Page, tool: string) => call(page, tool).locator(".call-state");

test("the nested turns of a call are a tree", async ({ start, enter }) => {
  const desk = fixture([{ name: "note" }, { name: "pay", approval: "requires-approval" }]);
  const host = await start({ components: { program: illegal("program"), desk }, tables: TABLES });
  const [agent, alice] = [host.token("agent", ["caller"]), host.token("alice", ["approver"])];
  const root = host.token("root", ["admin"]);

  const both = [
    { tool: "note", arguments: { text: HOSTILE } },
    { tool: "pay", arguments: { amount: 5 } },
  ];
  const turn = await agent.call("tree", "run", calling({ tool: "run", arguments: calling(...both) }));
  const page = await enter(host, root);
  await open(page);
  await expect(state(page, "note")).toHaveText("ok");
  await expect(call(page, "note").getByLabel("Result")).toContainText(
    'onerror=\\"window.pwned=1\\">\\u{202e}',
  );
  await expect(state(page, "pay")).toHaveText("needs approvalwaiting");
  await expect(call(page, "pay").getByRole("link", { name: "Answer" })).toBeVisible();
  await examine(page, "light");
  const phone = await enter(host, root, { colorScheme: "dark", viewport: { width: 390, height: 844 } });
  await open(phone);
  await expect(state(phone, "pay")).toBeVisible();
  await examine(phone, "dark, on a phone");
  await phone.close();

  const { suspensions } = await alice.send<{ suspensions: { suspension: string; tool: string }[] }>(
    "GET",
    "/v1/pending?conversation=tree",
  );
  const asked = suspensions.find(({ tool }) => tool === "pay")?.suspension;
  await alice.send("POST", `/v1/suspensions/${asked}/resolve`, { decision: "approve" });
  await expect(state(page, "pay")).toHaveText("needs approvalok");
  expect((await agent.ended(turn)).outcome).toBe("ok");

  await open(page);
  await expect(call(page, "pay").getByLabel("Result")).toContainText("amount: 5");
  await call(page, "note").getByRole("button", { name: "Log", exact: true }).click();
  await expect(call(page, "note")).toContainText("This call has no log lines.");
  expect(await page.evaluate(() => "pwned" in window)).toBe(false);
});
