// A reloaded page shows the host's current state, without duplicates.
import { fixture } from "../src/components";
import { approvals, button, expect, questions, test } from "../src/test";

test.describe("a reload in the middle", () => {
  test("during an unsent answer, the card is fresh again", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const agent = host.token("agent", ["caller"]);
    const page = await enter(host, host.token("alice", ["approver"]));
    const turn = await agent.call("reload", "gated_echo", { value: "as it was asked" });
    const card = approvals(page);
    await card.getByLabel("Comment, kept with the answer").fill("half a sentence");
    await page.reload();
    await expect(page.getByRole("heading", { name: "Inbox", level: 1 })).toBeVisible();
    await expect(card).toHaveCount(1);
    await expect(card).toContainText("as it was asked");
    await expect(card.getByLabel("Comment, kept with the answer")).toHaveValue("");
    await button(card, "Approve").click();
    expect((await agent.ended(turn)).outcome).toBe("ok");
  });

  test("an unsent answer survives another page and a kill", async ({ start, enter }) => {
    const response = {
      type: "object",
      required: ["day"],
      properties: { day: { type: "string", title: "Day" } },
    };
    const tool = { name: "visit", executor: "human", options: { response } } as const;
    const host = await start({ components: { visit: fixture([tool]) } });
    const agent = host.token("agent", ["caller"]);
    const page = await enter(host, host.token("alice", ["approver"]));
    const turn = await agent.call("draft", "visit", {});
    const day = questions(page).getByLabel("Day");
    await day.fill("Tues");
    await host.kill();
    await expect(page.getByText(/^The host does not answer/)).toBeVisible();
    await expect(day).toBeFocused();
    await page.keyboard.type("d");
    await host.start();
    await expect(page.getByText(/^The host does not answer/)).toBeHidden();
    await expect(day).toBeFocused();
    await expect(day).toHaveValue("Tuesd");
    await page.getByRole("link", { name: "Conversations" }).click();
    await expect(page.getByRole("heading", { name: "Conversations", level: 1 })).toBeVisible();
    await page.getByRole("link", { name: "Inbox" }).click();
    await expect(day).toHaveValue("Tuesd");
    await page.getByRole("radio", { name: "Questions" }).click();
    await expect(day).toHaveValue("Tuesd");
    await day.press("End");
    await day.pressSequentially("ay");
    await button(questions(page), "Answer").click();
    expect((await agent.ended(turn)).content).toMatchObject({ result: { day: "Tuesday" } });
  });

  test("during a request, the answer counts once", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const [agent, root] = [host.token("agent", ["caller"]), host.token("root", ["admin"])];
    const page = await enter(host, host.token("alice", ["approver"]));
    const turn = await agent.call("reload", "gated_echo", { value: 1 });
    const card = approvals(page);
    // The host accepts the answer, but neither the response nor the event reaches the page.
    const taken = new Promise<number>((resolve) => {
      void page.route("**/resolve", async (route) => resolve((await route.fetch()).status()));
    });
    await button(card, "Approve").click();
    expect(await taken).toBe(200);
    await page.unroute("**/resolve");
    await page.reload();
    await expect(page.getByText("Nothing is waiting for you.")).toBeVisible();
    await expect(card).toHaveCount(0);
    expect((await agent.ended(turn)).outcome).toBe("ok");
    expect(await root.answers("reload")).toEqual([{ by: "alice", action: "approve", via: "console" }]);
  });

  test("of a timeline, every event is shown once", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const agent = host.token("agent", ["caller"]);
    const page = await enter(host, host.token("alice", ["approver"]));
    await agent.call("story", "echo", { value: "the first" });
    await page.goto("/conversations/story");
    const turns = page.locator("ol.turns > li");
    await expect(turns).toHaveCount(1);
    await agent.call("story", "gated_echo", { value: "the second" });
    await expect(turns).toHaveCount(2);
    await page.reload();
    await expect(turns).toHaveCount(2);
    await expect(page.getByText("live", { exact: true })).toBeVisible();
    // Waiting calls are listed at the top of a long conversation.
    const waits = page.getByText(/^Waits for an answer:/);
    await expect(waits.getByRole("link", { name: "gated_echo" })).toBeVisible();
    await page.getByRole("link", { name: "Answer" }).click();
    await button(approvals(page), "Approve").click();
    await page.goBack();
    await expect(turns).toHaveCount(2);
    await expect(turns.last().getByText("approve", { exact: true })).toHaveCount(1);
    await expect(turns.last()).toContainText("alice");
    await expect(waits).toHaveCount(0);
  });
});
