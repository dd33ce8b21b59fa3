// Checks every page with axe-core, light and dark, on desktop and phone.

import { examine } from "../src/axe";
import { fixture } from "../src/components";
import type { Host } from "../src/host";
import { approvals, button, expect, questions, test } from "../src/test";

/** The client call stays open during the test. */
const TABLES = `
client_grace_ms = 600000

[[policy]]
name = "large"
tools = "gated_echo"
rule = "ask"
risk = "high"
reason = "values like this need two people"
[[policy.needs]]
who = ["principal:root", "group:finance"]
quorum = 2
escalate = { after_ms = 600000, to = ["role:admin"] }
`;

const RESPONSE = {
  type: "object",
  required: ["day"],
  properties: {
    day: { type: "string", title: "Day", description: "When they shall come." },
    floors: {
      type: "array",
      title: "Floors",
      items: { type: "object", properties: { floor: { type: "integer", title: "Floor" } } },
    },
    kind: {
      oneOf: [
        { title: "Small", type: "object", properties: { boxes: { type: "integer" } } },
        { title: "Large", type: "string" },
      ],
    },
  },
};

const TOOLS = [
  {
    name: "when",
    executor: "human",
    options: { title: "A day for the movers", response: RESPONSE, responses: ["answer", "decline"] },
  },
  {
    name: "edited",
    approval: "requires-approval",
    parameters: { type: "object", properties: { value: {} } },
    options: { editable: "all", prompt: "Edit {value}?" },
  },
  { name: "locate", executor: "client" },
  { name: "talk", streaming: true },
] as const;

/** Data of each kind, so that no page is empty. */
async function fill(host: Host): Promise<{ question: string }> {
  const agent = host.token("agent", ["caller"]);
  const context = { ticket: "OPS-118" };
  await agent.call("story", "echo", { value: { nested: [1, "two", null, { three: true }] } });
  await agent.call("story", "talk", { value: 1 });
  await agent.call("story", "gated_echo", { value: { amount: 2500, note: "rent" } }, context);
  await agent.call("story", "edited", { value: 1 }, context);
  const asked = await agent.call("story", "when", {});
  await agent.call("story", "locate", {});
  return { question: asked.calls[0]?.suspension ?? "" };
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const [size, viewport] of [
    ["desk", { width: 1280, height: 800 }],
    ["phone", { width: 390, height: 844 }],
  ] as const) {
    test(`no serious finding on any page, ${colorScheme}, ${size}`, async ({ start, enter, visit }) => {
      const host = await start({
        plugins: ["lab"],
        components: { words: fixture([...TOOLS]) },
        tables: TABLES,
      });
      const { question } = await fill(host);
      const root = host.token("root", ["admin", "approver"]);
      const look = { colorScheme, viewport };

      const stranger = await visit({ baseURL: host.url, ...look });
      await stranger.goto("/login");
      await expect(stranger.getByLabel("Token")).toBeVisible();
      await examine(stranger, "login");
      await stranger.goto("/link/none");
      await expect(stranger.getByRole("button", { name: "Show the question" })).toBeVisible();
      await examine(stranger, "link");

      const page = await enter(host, root, look);
      await expect(page.locator("toolgate-inbox [part~=item]")).toHaveCount(4);
      await expect(questions(page).getByRole("textbox", { name: "Day" })).toBeVisible();
      await expect(button(approvals(page, "Edit 1?"), "Approve")).toBeEnabled();
      await examine(page, "inbox");
      await button(approvals(page, "Edit 1?"), "Edit arguments").click();
      const long = `{"value": "${"much ".repeat(60)}"}`;
      await approvals(page, "Edit 1?").getByLabel("Arguments, as JSON").fill(long);
      await button(questions(page), "answer").click();
      await expect(questions(page).getByRole("textbox", { name: "Day" })).toHaveAttribute(
        "aria-invalid",
        "true",
      );
      await examine(page, "inbox, edited and wrong");

      const pages = {
        Question: `/suspensions/${question}`,
        Conversations: "/conversations",
        Conversation: "/conversations/story",
        Standing: "/standing",
        Plugins: "/plugins",
        Policy: "/policy",
        Audit: "/audit",
      };
      for (const [title, path] of Object.entries(pages)) {
        await page.goto(path);
        await expect(page.getByRole("heading", { level: 1 })).toContainText(title);
        await expect(page.locator(".skeleton")).toHaveCount(0);
        // On a phone not all links fit, but the current page's link is visible.
        if (title !== "Question")
          await expect(page.locator(".place[aria-current]")).toBeInViewport({ ratio: 0.95 });
        await examine(page, title);
      }
    });
  }
}
