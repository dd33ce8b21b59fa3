// A real authorization server, and the official SDK for TypeScript that finds it, gets a token and calls tools.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  type CallToolResult,
  Client,
  ClientCredentialsProvider,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { Host } from "../src/host.ts";
import { CALL, CLIENT, Issuer, OTHER } from "../src/issuer.ts";

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });

describe("an authorization server", () => {
  const host = new Host();
  let issuer: Issuer;
  let resource: string;

  before(async () => {
    issuer = await Issuer.start();
    // The resource has the port, which is known after the first start.
    await host.start();
    await host.kill();
    resource = `${host.url}/mcp`;
    host.configure(`[oauth]\nissuer = "${issuer.url}"\naudience = "${resource}"\n`);
    await host.start();
  });
  after(async () => {
    await host.dispose();
    issuer.stop();
  });

  /** The status and the challenge of `tools/list` with this token. */
  async function listed(token?: string): Promise<{ status: number; challenge: string }> {
    const answered = await fetch(resource, {
      method: "POST",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2025-11-25",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: LIST,
    });
    return { status: answered.status, challenge: answered.headers.get("www-authenticate") ?? "" };
  }

  it("is found by the SDK, which gets a token and calls tools", async () => {
    const authProvider = new ClientCredentialsProvider({
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      expectedIssuer: issuer.url,
    });
    const client = new Client({ name: "sdk", version: "1" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(new URL(resource), { authProvider }));
    // It asked for the scope of the challenge.
    assert.equal(authProvider.tokens()?.scope, CALL);
    const { tools } = await client.listTools();
    assert(tools.some((tool) => tool.name === "regional"));
    const result = (await client.callTool({
      name: "regional",
      arguments: { region: "Zürich" },
    })) as CallToolResult;
    assert.deepEqual(result.content, [{ type: "text", text: "Zürich" }]);

    // The audit names the subject, and the principal approves nothing.
    const gated = client.callTool({ name: "gated_greet", arguments: { name: "oauth" } });
    const pending = await host.pending("gated_greet");
    assert.match(pending.caller, new RegExp(`^oauth:[A-Za-z0-9_-]{16}:${CLIENT.id}$`));
    await assert.rejects(host.command(["approve", pending.suspension], authProvider.tokens()?.access_token));
    await host.approve(pending.suspension);
    assert.deepEqual(((await gated) as CallToolResult).content, [{ type: "text", text: "Hello, oauth!" }]);
    await client.close();
  });

  it("is named by the challenge, through the metadata", async () => {
    const { status, challenge } = await listed();
    assert.equal(status, 401);
    const [, metadata = ""] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    assert.match(challenge, new RegExp(`scope="${CALL}"`));
    const document = (await (await fetch(metadata)).json()) as Record<string, unknown>;
    assert.deepEqual(document, {
      resource,
      authorization_servers: [issuer.url],
      scopes_supported: [CALL],
      bearer_methods_supported: ["header"],
    });
  });

  it("gives tokens that need this audience and the scope", async () => {
    assert.equal((await listed(await issuer.token(resource, CALL))).status, 200);
    const elsewhere = await listed(await issuer.token("http://127.0.0.1:9/mcp", CALL));
    assert.equal(elsewhere.status, 401);
    assert.match(elsewhere.challenge, /error="invalid_token"/);
    // The client learns which scope is missing, and asks for it.
    const few = await listed(await issuer.token(resource, OTHER));
    assert.equal(few.status, 403);
    const [, scope = ""] = /error="insufficient_scope", scope="([^"]+)"/.exec(few.challenge) ?? [];
    assert.equal((await listed(await issuer.token(resource, scope))).status, 200);
    assert.equal((await listed(await host.token("own", "caller"))).status, 200);
  });

  it("that is not this issuer is refused", async () => {
    const other = await Issuer.start();
    const { status, challenge } = await listed(await other.token(resource, CALL));
    other.stop();
    assert.equal(status, 401);
    assert.match(challenge, /error="invalid_token"/);
  });
});
