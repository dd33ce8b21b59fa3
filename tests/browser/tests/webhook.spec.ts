// The suspension's page shows webhook deliveries live.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { suspensionOf } from "../src/client";
import { approvals, button, expect, test } from "../src/test";

/** A webhook receiver whose responses the test controls. */
async function receiver() {
  const got: { type: string; answer: (status: number) => void }[] = [];
  const waiting: ServerResponse[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    waiting.push(response);
    const answer = (status: number) => response.writeHead(status).end();
    got.push({ type: (JSON.parse(body) as { type: string }).type, answer });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/toolgate`,
    got,
    close: async () => {
      for (const response of waiting) response.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("webhook deliveries are shown live", async ({ start, enter }) => {
  const hook = await receiver();
  const host = await start({
    plugins: ["lab"],
    tables: `[[webhook]]\nname = "pager"\nurl = "${hook.url}"\nprivate = true\nsecret_file = "pager.secret"\n`,
    files: { "pager.secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n" },
  });
  const agent = host.token("agent", ["caller"]);
  const page = await enter(host, host.token("alice", ["approver"]));
  const turn = await agent.call("notified", "gated_echo", { value: 1 });
  // The page polls. The test advances its clock.
  await page.clock.install();
  await page.goto(`/suspensions/${suspensionOf(turn)}`);
  const around = page.getByRole("region", { name: "Details" });
  const line = (event: string) => around.getByRole("listitem").filter({ hasText: `${event} to pager` });
  const comes = (event: string, text: string) =>
    expect(async () => {
      await page.clock.fastForward(3000);
      await expect(line(event)).toContainText(text, { timeout: 1000 });
    }).toPass({ timeout: 20_000 });
  await expect(line("opened")).toContainText("pending");
  await expect.poll(() => hook.got.map(({ type }) => type)).toEqual(["suspension.opened"]);
  hook.got[0]?.answer(200);
  await comes("opened", "delivered");

  // Failures and retries are shown too.
  await button(approvals(page), "Approve").click();
  await expect(around).toContainText("by alice");
  await expect(line("closed")).toContainText("pending");
  await expect
    .poll(() => hook.got.map(({ type }) => type))
    .toEqual(["suspension.opened", "suspension.closed"]);
  hook.got[1]?.answer(503);
  await comes("closed", "503");
  await expect.poll(() => hook.got.length).toBe(3);
  hook.got[2]?.answer(204);
  await comes("closed", "delivered");
  await expect(line("closed")).toContainText("2 attempts");
  await hook.close();
});
