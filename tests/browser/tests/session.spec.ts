// Log-in, log-out, and one-time links.
import { suspensionOf } from "../src/client";
import { approvals, button, expect, stay, test } from "../src/test";

// The response and the event arrive in any order, and the event names the principal.
const APPROVED = /^Approved( by oncall \(by a link\))?\.$/;

test("a wrong token is refused, a right one opens the page", async ({ start, visit }) => {
  const host = await start({ plugins: ["lab"] });
  const [root, agent] = [host.token("root", ["admin"]), host.token("agent", ["caller"])];
  await agent.call("story", "echo", { value: 1 });
  const page = await visit({ baseURL: host.url });
  await page.goto("/conversations/story");
  await page.getByLabel("Token").fill(`${root.token}x`);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByLabel("Token")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Token").fill(root.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Conversation", level: 1 })).toBeVisible();
  const [cookie] = await page.context().cookies();
  await page.getByRole("button", { name: /^root.*theme and log-out/ }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
  // A copy of the cookie is no longer valid.
  const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
  expect((await fetch(`${host.url}/v1/pending`, { headers })).status).toBe(401);
});

test("a one-time link opens one question once", async ({ start, visit }) => {
  const host = await start({ plugins: ["lab"] });
  const [root, agent] = [host.token("root", ["admin"]), host.token("agent", ["caller"])];
  host.token("oncall", ["approver"]);
  const turn = await agent.call("linked", "gated_echo", { value: "this one" });
  const other = await agent.call("linked", "gated_echo", { value: "another" });
  const { url } = await root.send<{ url: string }>("POST", `/v1/suspensions/${suspensionOf(turn)}/links`, {
    principal: "oncall",
    ttl_ms: 600_000,
  });
  const page = await visit({ baseURL: host.url });
  await page.goto(url);
  await page.reload();
  await page.getByRole("button", { name: "Show the question" }).click();
  await expect(approvals(page)).toHaveCount(1);
  await expect(approvals(page)).toContainText("this one");

  for (const path of ["/", "/audit", `/suspensions/${suspensionOf(other)}`]) {
    await page.goto(path);
    await expect(approvals(page)).toContainText("this one");
    await expect(page.getByText("another")).toHaveCount(0);
  }
  for (const path of [
    "/v1/pending",
    "/v1/audit",
    "/v1/conversations",
    `/v1/suspensions/${suspensionOf(other)}`,
  ])
    expect((await page.request.get(path)).status(), path).toBe(403);

  await button(approvals(page), "Approve").click();
  await expect(approvals(page).getByRole("status")).toHaveText(APPROVED);
  await page.reload();
  await expect(approvals(page).getByRole("status")).toHaveText("Approved by oncall (by a link).");
  expect((await agent.ended(turn)).outcome).toBe("ok");
  const second = await visit({ baseURL: host.url });
  await second.goto(url);
  await second.getByRole("button", { name: "Show the question" }).click();
  await expect(second.getByRole("alert")).not.toBeEmpty();
  await expect(second.locator("toolgate-approval")).toHaveCount(0);
});

test("a link's question is answered as the link's principal only", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"] });
  const [root, agent] = [host.token("root", ["admin"]), host.token("agent", ["caller"])];
  host.token("oncall", ["approver"]);
  const page = await enter(host, host.token("alice", ["approver"]));
  const me = (name: string) => page.getByRole("button", { name: new RegExp(`^${name}.*theme and log-out`) });
  const linked = await agent.call("linked", "gated_echo", { value: "this one" });
  const own = await agent.call("own", "gated_echo", { value: "another" });
  const { url } = await root.send<{ url: string }>("POST", `/v1/suspensions/${suspensionOf(linked)}/links`, {
    principal: "oncall",
    ttl_ms: 600_000,
  });
  await page.goto(url);
  await page.getByRole("button", { name: "Show the question" }).click();
  await expect(me("oncall")).toBeVisible();
  await page.reload();
  await expect(me("oncall")).toBeVisible();
  const inbox = await enter(host, host.token("carol", ["approver"]));
  const seen = approvals(inbox, '"this one"');
  await expect(seen).toBeVisible();
  await stay(inbox);
  await button(approvals(page, "this one"), "Approve").click();
  await expect(approvals(page).getByRole("status")).toHaveText(APPROVED);
  expect((await agent.ended(linked)).outcome).toBe("ok");
  // Other pages say that a link answered.
  await expect(seen.getByRole("status")).toHaveText("Approved by oncall (by a link).");

  await page.getByRole("link", { name: "toolgate" }).click();
  await expect(page.getByRole("heading", { name: "Inbox", level: 1 })).toBeVisible();
  await expect(me("alice")).toBeVisible();
  await button(approvals(page, "another"), "Approve").click();
  await expect(approvals(page, "another").getByRole("status")).toHaveText("Approved by alice.");
  expect((await agent.ended(own)).outcome).toBe("ok");
  expect(await root.answers("linked")).toEqual([{ by: "oncall", action: "approve", via: "link" }]);
  expect(await root.answers("own")).toEqual([{ by: "alice", action: "approve", via: "console" }]);
});

test("an expired link reads nothing until the user continues", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"] });
  const [root, agent] = [host.token("root", ["admin"]), host.token("agent", ["caller"])];
  host.token("oncall", ["approver"]);
  const page = await enter(host, host.token("alice", ["approver"]));
  const linked = await agent.call("linked", "gated_echo", { value: "this one" });
  const { url } = await root.send<{ url: string }>("POST", `/v1/suspensions/${suspensionOf(linked)}/links`, {
    principal: "oncall",
  });
  await page.clock.install();
  await page.goto(url);
  await page.getByRole("button", { name: "Show the question" }).click();
  const card = approvals(page, "this one");
  await expect(button(card, "Approve")).toBeEnabled();
  // The session expires after an hour. The card then polls.
  await page.context().clearCookies({ name: "toolgate_link" });
  const read: string[] = [];
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    if (pathname.startsWith("/v1/") && pathname !== "/v1/session" && response.ok()) read.push(pathname);
  });
  await page.clock.fastForward(3000);
  await expect(page.getByRole("heading", { name: "This link is no longer valid", level: 1 })).toBeFocused();
  await expect(card).toHaveCount(0);
  expect(read).toEqual([]);
  await page.getByRole("button", { name: "Continue as alice" }).click();
  await expect(page.getByRole("button", { name: /^alice.*theme and log-out/ })).toBeVisible();
  await button(card, "Approve").click();
  await expect(card.getByRole("status")).toHaveText("Approved by alice.");
  expect(await root.answers("linked")).toEqual([{ by: "alice", action: "approve", via: "console" }]);
});

test("Enter pressed twice logs in once, and is announced", async ({ start, visit }) => {
  const host = await start({ plugins: ["lab"] });
  const root = host.token("root", ["admin"]);
  const page = await visit({ baseURL: host.url });
  let [asked, go] = [0, () => {}];
  const both = new Promise<void>((resolve) => {
    go = resolve;
  });
  await page.route("**/v1/session", async (route) => {
    if (route.request().method() === "POST") {
      asked += 1;
      await both;
    }
    await route.continue();
  });
  await page.goto("/");
  await page.getByLabel("Token").fill(root.token);
  await page.getByLabel("Token").press("Enter");
  await expect(page.getByRole("status").filter({ hasText: "Logging in …" })).toBeAttached();
  await page.getByLabel("Token").press("Enter");
  await page.getByLabel("Token").press("Enter");
  await page.getByRole("button", { name: "Logging in …" }).click({ force: true });
  go();
  await expect(page.getByRole("heading", { name: "Inbox", level: 1 })).toBeVisible();
  expect(asked).toBe(1);
});

test("a comment outlives the end of the session", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"] });
  const alice = host.token("alice", ["approver"]);
  const agent = host.token("agent", ["caller"]);
  await agent.call("talk", "gated_echo", { value: 1 });
  const page = await enter(host, alice);
  await approvals(page).getByLabel("Comment").fill("not before Monday");
  await page.context().clearCookies();
  await button(approvals(page), "Deny").click();
  await page.getByLabel("Token").fill(alice.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(approvals(page).getByLabel("Comment")).toHaveValue("not before Monday");
  await button(approvals(page), "Deny").click();
  await expect(approvals(page).getByRole("status")).toHaveText("Denied by alice.");
});

test("logging out of an ended session leads to the login", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"] });
  const page = await enter(host, host.token("root", ["admin"]));
  await page.goto("/conversations");
  await expect(page.getByText("No conversation yet")).toBeVisible();
  await page.context().clearCookies();
  await page.getByRole("button", { name: /^root.*theme and log-out/ }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
  expect(new URL(page.url()).pathname).toBe("/login");
  await expect(page.getByText("You are still logged in")).toHaveCount(0);
});
