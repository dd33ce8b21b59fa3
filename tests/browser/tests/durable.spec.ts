// The journal of a durable call in the timeline.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { illegal } from "../src/components";
import { expect, test } from "../src/test";

test("the steps of a durable call are shown, also after a kill", async ({ start, enter }) => {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    bodies.push(body);
    response.end("done");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const grants = `[[plugin.program.grants.http]]\nurl = "${url}"\nmethods = ["POST"]\nprivate = true\n`;
  const others =
    '[plugin.program]\ncomponent = "any"\ngrants.keyvalue = true\ngrants.config = { region = "eu" }\n';
  const host = await start({ components: { program: illegal("program") }, tables: others + grants });
  const [agent, alice] = [host.token("agent", ["caller"]), host.token("alice", ["approver"])];
  const page = await enter(host, host.token("root", ["admin"]));

  const send = (body: string) => ({ do: "send", method: "POST", url, body });
  const program = [send("x"), { do: "ask", prompt: "Go on?" }, send("y")];
  const turn = await agent.call("steps", "run", { program });
  await page.goto("/conversations/steps");
  await page.getByRole("button", { name: "Journal", exact: true }).click();
  const effects = (part: string) => page.getByRole("region", { name: part }).getByRole("listitem");
  await expect(effects("From the beginning")).toHaveText([/run 1configuration/, /run 1http POST/]);

  await host.kill();
  await host.start();
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  const answer = { decision: "answer", data: "yes" };
  await alice.send("POST", `/v1/suspensions/${turn.calls[0]?.suspension}/resolve`, answer);
  expect((await agent.ended(turn)).outcome).toBe("ok");
  await expect(effects("After step 1")).toHaveText([/run 2http POST/]);
  await expect(effects("From the beginning")).toHaveText([/run 1configuration/, /run 1http POST/]);
  expect(bodies).toEqual(["x", "y"]);
  server.close();
});
