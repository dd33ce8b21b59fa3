// Everything works without a pointer.
import { fixture } from "../src/components";
import { approvals, expect, questions, test } from "../src/test";

const GRAVE = '[[policy]]\ntools = "echo"\nrule = "ask"\nrisk = "high"\n';

test.describe("with the keyboard alone", () => {
  test("log in, move between cards, approve, deny, edit and answer", async ({ start, visit }) => {
    const question = {
      name: "when",
      executor: "human",
      options: {
        response: {
          type: "object",
          required: ["day"],
          properties: { day: { type: "string", title: "Day" } },
        },
      },
    } as const;
    const edited = { name: "reworded", approval: "requires-approval", options: { editable: "all" } } as const;
    const host = await start({ plugins: ["lab"], components: { words: fixture([question, edited]) } });
    const [agent, alice] = [host.token("agent", ["caller"]), host.token("alice", ["approver"])];
    const page = await visit({ baseURL: host.url });
    const { keyboard } = page;
    await page.goto("/");
    await expect(page.getByLabel("Token")).toBeFocused();
    await keyboard.type(alice.token);
    await keyboard.press("Enter");
    await expect(page.getByRole("heading", { name: "Inbox", level: 1 })).toBeVisible();

    const turns = [
      await agent.call("keys", "gated_echo", { value: "yes" }),
      await agent.call("keys", "gated_echo", { value: "no" }),
      await agent.call("keys", "reworded", { value: 1 }),
      await agent.call("keys", "when", {}),
    ] as const;
    await expect(page.locator("toolgate-inbox [part~=item]")).toHaveCount(4);
    const card = (text: string) => approvals(page, text).getByRole("article");

    // Nothing has the focus after the log-in, and j enters the inbox.
    const focused = () => page.evaluate(() => document.activeElement?.localName ?? "");
    expect(await focused()).toBe("body");
    await keyboard.press("j");
    expect(await focused()).toBe("toolgate-inbox");
    // Tab reaches it too; j and k move between the cards.
    await page.getByRole("link", { name: "toolgate" }).focus();
    for (let stops = 0; (await focused()) !== "toolgate-inbox"; stops += 1) {
      expect(stops, "the inbox is not reached with Tab").toBeLessThan(30);
      await keyboard.press("Tab");
    }
    await keyboard.press("j");
    while (
      !(await card("Echo yes?").evaluate((one) => one === (one.getRootNode() as ShadowRoot).activeElement))
    )
      await keyboard.press("k");
    await expect(approvals(page, "Echo yes?").getByRole("button", { name: "Approve" })).toBeEnabled();
    await keyboard.press("a");
    await expect(approvals(page, "Echo yes?").getByRole("status")).toHaveText("Approved by alice.");
    await keyboard.press("j");
    await expect(card("Echo no?")).toBeFocused();
    await expect(approvals(page, "Echo no?").getByRole("button", { name: "Deny" })).toBeEnabled();
    await keyboard.press("d");
    await expect(approvals(page, "Echo no?").getByRole("status")).toHaveText("Denied by alice.");

    await keyboard.press("j");
    await expect(card("reworded")).toBeFocused();
    await expect(approvals(page, "reworded").getByRole("button", { name: "Approve" })).toBeEnabled();
    await keyboard.press("e");
    await expect(approvals(page, "reworded").getByLabel("Arguments, as JSON")).toBeFocused();
    await keyboard.press("ControlOrMeta+a");
    await keyboard.type('{"value": 2}');
    await keyboard.press("Escape");
    await expect(approvals(page, "reworded").getByLabel("Arguments, as JSON")).toBeHidden();
    await keyboard.press("e");
    await keyboard.press("ControlOrMeta+a");
    await keyboard.type('{"value": 3}');
    const approve = approvals(page, "reworded").getByRole("button", { name: "Approve as edited" });
    for (let stops = 0; !(await approve.evaluate((one) => one.matches(":focus"))); stops += 1) {
      expect(stops, "the button is not reached with Tab").toBeLessThan(10);
      await keyboard.press("Tab");
    }
    await keyboard.press("Enter");
    await expect(approvals(page, "reworded").getByRole("status")).toHaveText(
      "Approved by alice, with edited arguments.",
    );

    await keyboard.press("j");
    await expect(questions(page).getByRole("article")).toBeFocused();
    await keyboard.press("Tab");
    for (
      let stops = 0;
      !(await questions(page)
        .getByLabel("Day")
        .evaluate((one) => one.matches(":focus")));
      stops += 1
    ) {
      expect(stops, "the field is not reached with Tab").toBeLessThan(10);
      await keyboard.press("Tab");
    }
    await keyboard.type("Friday");
    await keyboard.press("Control+Enter");
    await expect(questions(page)).toHaveAttribute("closed");

    const ended = await Promise.all(turns.map((turn) => agent.ended(turn)));
    expect(ended.map(({ outcome }) => outcome)).toEqual(["ok", "denied", "ok", "ok"]);
    expect(ended[2]?.content).toMatchObject({ result: { value: 3 } });
    expect(ended[3]?.content).toMatchObject({ result: { day: "Friday" } });
  });

  test("a call of high risk takes two presses of a key", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"], tables: GRAVE });
    const agent = host.token("agent", ["caller"]);
    const page = await enter(host, host.token("alice", ["approver"]));
    const turn = await agent.call("grave", "echo", { value: 1 });
    const card = approvals(page);
    await expect(card.getByRole("button", { name: "Approve" })).toBeEnabled();
    await card.getByRole("article").focus();
    await page.keyboard.press("a");
    await expect(card.getByRole("button", { name: "Press again to approve" })).toBeVisible();
    await expect(card).not.toHaveAttribute("closed");
    await page.keyboard.press("a");
    await expect(card.getByRole("status")).toHaveText("Approved by alice.");
    expect((await agent.ended(turn)).outcome).toBe("ok");
  });

  test("the pages, the list of keys and the menu", async ({ start, enter }) => {
    const host = await start({ plugins: ["lab"] });
    const page = await enter(host, host.token("root", ["admin", "approver"]));
    const { keyboard } = page;
    for (const [key, title] of [
      ["c", "Conversations"],
      ["p", "Plugins"],
      ["a", "Audit"],
      ["i", "Inbox"],
    ] as const) {
      await keyboard.press("g");
      await keyboard.press(key);
      await expect(page.getByRole("heading", { name: title, level: 1 })).toBeFocused();
    }
    await keyboard.press("?");
    await expect(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
    await keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
    const menu = page.getByRole("button", { name: /^root.*theme and log-out/ });
    for (let stops = 0; !(await menu.evaluate((one) => one.matches(":focus"))); stops += 1) {
      expect(stops, "the menu is not reached with Shift+Tab").toBeLessThan(20);
      await keyboard.press("Shift+Tab");
    }
    await keyboard.press("Enter");
    await expect(page.getByRole("menu")).toBeVisible();
    await keyboard.press("End");
    await expect(page.getByRole("menuitem", { name: "Log out" })).toBeFocused();
    await keyboard.press("Enter");
    await expect(page.getByLabel("Token")).toBeFocused();
  });
});
