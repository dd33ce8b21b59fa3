// The card of a call, in a client with the official SDK for MCP Apps.
import type { Host } from "../src/host";
import { client, type Site } from "../src/site";
import { expect, test } from "../src/test";

/** Text that hides what follows, and that would run if it were HTML. */
const HOSTILE = "\u202e<img src=x onerror=alert(1)>";

let site: Site;
test.beforeAll(async () => {
  site = await client();
});
test.afterAll(() => site.close());

/** One request of the newest revision. */
async function mcp(host: Host, token: string, method: string, params: Record<string, unknown>) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "client", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {
      extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } },
    },
    ...(params._meta as object),
  };
  const response = await fetch(`${host.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...("name" in params && { "mcp-name": String(params.name) }),
      ...("uri" in params && { "mcp-name": String(params.uri) }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
  });
  const { result, error } = (await response.json()) as { result: never; error?: unknown };
  if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
  return result;
}

test("a card shows its call and follows it to its end", async ({ start, visit }) => {
  const host = await start({ plugins: ["lab"] });
  const [agent, bob] = [host.token("agent", ["caller"]), host.token("bob", ["approver"])];
  const ask = (method: string, params: Record<string, unknown>) => mcp(host, agent.token, method, params);

  const { tools } = (await ask("tools/list", {})) as {
    tools: { name: string; _meta: { ui?: { resourceUri: string } } }[];
  };
  const tool = tools.find(({ name }) => name === "gated_echo");
  const uri = tool?._meta.ui?.resourceUri ?? "";
  const { contents } = (await ask("resources/read", { uri })) as { contents: { text: string }[] };
  const input = { value: HOSTILE };
  // The model's request waits for the approval. The state of its call is the same as of its result.
  const request = ask("tools/call", {
    name: "gated_echo",
    arguments: input,
    _meta: { "dev.toolgate/callId": "one" },
  });
  const pending = async () =>
    (await bob.send<{ suspensions: { suspension: string }[] }>("GET", "/v1/pending")).suspensions[0]
      ?.suspension;
  await expect.poll(pending).toBeTruthy();
  const suspension = await pending();
  const state = { name: "toolgate_state", arguments: { call: "one" } };
  const result = await ask("tools/call", state);

  const page = await visit();
  const [opened, asked]: [string[], unknown[]] = [[], []];
  await page.exposeFunction("read", () => ({ html: contents[0]?.text, tool, input, result }));
  await page.exposeFunction("open", (url: string) => opened.push(url));
  await page.exposeFunction("shown", () => {});
  await page.exposeFunction("call", (params: Record<string, unknown>) => {
    asked.push(params);
    return ask("tools/call", params);
  });
  await page.goto(site.origin);
  const card = page.frameLocator("iframe");
  await expect(card.getByRole("heading")).toHaveText("gated_echo");
  await expect(card.getByRole("status")).toContainText(
    "It waits until a person approves or denies it. Until ",
  );
  await expect(card.getByLabel("Arguments")).toContainText("\\u{202e}<img src=x onerror=alert(1)>");
  await card.getByRole("button", { name: "Open it in the console" }).click();
  await expect.poll(() => opened).toEqual([`${host.url}/suspensions/${suspension}`]);

  await bob.send("POST", `/v1/suspensions/${suspension}/resolve`, { decision: "approve" });
  const { content } = (await request) as { content: { text: string }[] };
  expect(content[0]?.text).toContain("<img");
  await expect(card.getByRole("status")).toHaveText("It has ended: ok.");
  await expect(card.getByRole("button")).toBeHidden();
  expect(asked).toEqual(asked.map(() => state));
});
