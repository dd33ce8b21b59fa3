// Client tools on another site, whose origin the operator allowed: the demo of sdk/web.
import type { Page } from "@playwright/test";
import type { Client } from "../src/client";
import type { Host } from "../src/host";
import { demo, type Site } from "../src/site";
import { approvals, button, expect, test } from "../src/test";

let site: Site;
test.beforeAll(async () => {
  site = await demo();
});
test.afterAll(() => site.close());

function people(host: Host) {
  return { me: host.token("me", ["client", "approver"]), agent: host.token("agent", ["caller"]) };
}

/** Attaches the demo to a conversation. */
async function connect(
  page: Page,
  host: Host,
  me: Client,
  agent: Client,
  conversation: string,
): Promise<void> {
  await page.goto(site.origin);
  await page.getByLabel("Host", { exact: true }).fill(host.url);
  await page.getByLabel(/^Token of yours/).fill(me.token);
  await page.getByLabel(/^Token of an agent/).fill(agent.token);
  await page.getByLabel("Conversation").fill(conversation);
  await page.getByRole("button", { name: "Connect" }).click();
}

const server = () => `[server]\norigins = ["${site.origin}"]\n`;

test.describe("a page with tools of its own", () => {
  test("a gated call reaches the page only after the approval", async ({ start, visit }) => {
    const host = await start({ plugins: ["browser"], tables: server() });
    const { me, agent } = people(host);
    const page = await visit();
    await connect(page, host, me, agent, "files");
    await expect(page.getByText("Attached.")).toBeVisible();
    await page.getByRole("button", { name: "The agent asks for a file" }).click();

    const card = approvals(page);
    await expect(card).toContainText("The agent wants one of your files: to look at it");
    await expect(page.getByText("call.suspended")).toHaveCount(1);
    await expect(page.getByLabel("Your file")).toBeHidden();
    await button(card, "Approve").click();

    await expect(page.getByLabel("Your file")).toBeVisible();
    await expect(page.getByText("to look at it", { exact: true })).toBeVisible();
    await expect(page.getByText("call.suspended")).toHaveCount(2);
    await expect(page.getByText("progress: the user is choosing a file")).toHaveCount(1);
    const file = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("hello") };
    await page.getByLabel("Your file").setInputFiles(file);
    const result = '"result":{"name":"notes.txt","media_type":"text/plain","content":"aGVsbG8="}';
    await expect(page.getByText("pick_file: ")).toContainText(result);
    await expect(page.getByLabel("Your file")).toBeHidden();
    await expect(page.getByText("turn.settled")).toBeVisible();
  });

  test("a denied call never reaches the page", async ({ start, visit, enter }) => {
    const host = await start({ plugins: ["browser"], tables: server() });
    const { me, agent } = people(host);
    const [page, console] = [await visit(), await enter(host, host.token("alice", ["approver"]))];
    await connect(page, host, me, agent, "files");
    await expect(page.getByText("Attached.")).toBeVisible();
    await page.getByRole("button", { name: "The agent asks for a file" }).click();
    await button(approvals(console), "Deny").click();
    await expect(approvals(page).getByRole("status")).toHaveText("Denied by alice.");
    await expect(page.getByText("pick_file: ")).toContainText("denied");
    await expect(page.getByText("call.suspended")).toHaveCount(1);
    await expect(page.getByLabel("Your file")).toBeHidden();
  });

  test("an ungated call runs after the browser's permission prompt", async ({ start, visit }) => {
    const host = await start({ plugins: ["browser"], tables: server() });
    const { me, agent } = people(host);
    const page = await visit({ geolocation: { latitude: 52.52, longitude: 13.405, accuracy: 10 } });
    await page.context().grantPermissions(["geolocation"], { origin: site.origin });
    await connect(page, host, me, agent, "places");
    await expect(page.getByText("Attached.")).toBeVisible();
    await page.getByRole("button", { name: "The agent asks where you are" }).click();
    const place = '"result":{"latitude":52.52,"longitude":13.405,"accuracy":10}';
    await expect(page.getByText("get_location: ")).toContainText(place);
  });

  test("a reload before the answer runs the call once", async ({ start, visit }) => {
    const host = await start({ plugins: ["browser"], tables: server() });
    const { me, agent } = people(host);
    const root = host.token("root", ["admin"]);
    const page = await visit();
    await connect(page, host, me, agent, "again");
    await expect(page.getByText("Attached.")).toBeVisible();
    await page.getByRole("button", { name: "The agent asks for a file" }).click();
    await button(approvals(page), "Approve").click();
    await expect(page.getByLabel("Your file")).toBeVisible();
    await connect(page, host, me, agent, "again");
    await expect(page.getByLabel("Your file")).toBeVisible();
    await page
      .getByLabel("Your file")
      .setInputFiles({ name: "a", mimeType: "text/plain", buffer: Buffer.from("a") });
    await expect(page.getByText("pick_file: ")).toHaveCount(1);
    expect(await root.answers("again")).toEqual([
      { by: "me", action: "approve", via: "api" },
      { by: "me", action: "result", via: "api" },
    ]);
  });

  test("an origin that the operator did not name is refused", async ({ start, visit }) => {
    const host = await start({ plugins: ["browser"] });
    const { me, agent } = people(host);
    const page = await visit({ expected: /blocked by CORS policy/ });
    await connect(page, host, me, agent, "foreign");
    await expect(page.getByText("Not attached; trying again …")).toBeVisible();
    await page.getByRole("button", { name: "The agent asks for a file" }).click();
    await expect(page.getByText("the call was refused: ")).toBeVisible();
  });
});
