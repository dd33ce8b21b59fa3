// The nested turns of a call in the timeline.
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

test("the nested turns of a call are a tree", async ({ start, enter }) => {
  const desk = fixture([{ name: "note" }, { name: "pay", approval: "requires-approval" }]);
  const host = await start({ components: { program: illegal("program"), desk }, tables: TABLES });
  const [agent, alice] = [host.token("agent", ["caller"]), host.token("alice", ["approver"])];
  const page = await enter(host, host.token("root", ["admin"]));
  const fold = (name: string) => page.getByRole("button", { name, exact: true });
  // An outer call contains the inner ones, and comes first.
  const call = (tool: string) =>
    page
      .getByRole("listitem")
      .filter({ has: page.getByRole("heading", { name: tool, exact: true }) })
      .last();
  const state = (tool: string) => call(tool).locator(".call-state");

  const both = [
    { tool: "note", arguments: { text: HOSTILE } },
    { tool: "pay", arguments: { amount: 5 } },
  ];
  const turn = await agent.call("tree", "run", calling({ tool: "run", arguments: calling(...both) }));
  await page.goto("/conversations/tree");
  await fold("1 nested call").click();
  await fold("2 nested calls").click();
  await expect(state("note")).toHaveText("ok");
  await expect(call("note").getByLabel("Result")).toContainText('onerror=\\"window.pwned=1\\">\\u{202e}');
  await expect(state("pay")).toHaveText("needs approvalwaiting");
  await expect(call("pay").getByRole("link", { name: "Answer" })).toBeVisible();
  for (const colorScheme of ["light", "dark"] as const) {
    for (const viewport of [
      { width: 1280, height: 800 },
      { width: 390, height: 844 },
    ]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
      await examine(page, `${colorScheme}, ${viewport.width} pixels`);
    }
  }

  const { suspensions } = await alice.send<{ suspensions: { suspension: string; tool: string }[] }>(
    "GET",
    "/v1/pending?conversation=tree",
  );
  const asked = suspensions.find(({ tool }) => tool === "pay")?.suspension;
  await alice.send("POST", `/v1/suspensions/${asked}/resolve`, { decision: "approve" });
  await expect(state("pay")).toHaveText("needs approvalok");
  expect((await agent.ended(turn)).outcome).toBe("ok");

  await page.reload();
  await fold("1 nested call").click();
  await fold("2 nested calls").click();
  await expect(call("pay").getByLabel("Result")).toContainText('"amount": 5');
  await call("note").getByRole("button", { name: "Log" }).click();
  await expect(call("note")).toContainText("This call has no log lines.");
  expect(await page.evaluate(() => "pwned" in window)).toBe(false);
});
