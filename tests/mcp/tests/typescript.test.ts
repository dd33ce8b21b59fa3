// The official SDK for TypeScript and its package for tasks, over HTTP. The host is killed while calls wait.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  type CallToolResult,
  Client,
  type ListChangedHandlers,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type RawClientDispatch,
  resultFromTaskOutcome,
  type TaskEnabledSession,
} from "@modelcontextprotocol/ext-tasks/client";
import type { JsonValue } from "@modelcontextprotocol/ext-tasks/core";
import { BINARY, environment, Host, until } from "../src/host.ts";
import { type Members, Raw, REVISION } from "../src/messages.ts";

const INFO = { name: "sdk", version: "1" };

/** With it, a client chooses the id of its call. */
const CALL_ID = "dev.toolgate/callId";

/** The extension with which a client declares that it shows cards. */
const CARDS = "io.modelcontextprotocol/ui";
const CARD = "text/html;profile=mcp-app";

/** The text of a successful result. */
function text(result: unknown): string {
  const { content, isError } = result as CallToolResult;
  const first = content[0];
  assert(isError !== true && first?.type === "text", JSON.stringify(result));
  return first.text;
}

describe("the SDK for TypeScript over HTTP", () => {
  const host = new Host();
  let token: string;

  before(async () => {
    await host.start();
    token = await host.token("typescript", "caller");
  });
  after(() => host.dispose());

  async function connected(
    mode: "auto" | "legacy",
    capabilities = {},
    listChanged: ListChangedHandlers = {},
  ): Promise<Client> {
    const client = new Client(INFO, { capabilities, listChanged, versionNegotiation: { mode } });
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${host.url}/mcp`), { requestInit }));
    return client;
  }

  it("lists the tools, and calls them", async () => {
    const client = await connected("auto");
    assert.equal(client.getNegotiatedProtocolVersion(), REVISION);
    const { tools } = await client.listTools();
    assert(tools.some((tool) => tool.name === "toolgate_wait"));
    assert.equal((await client.callTool({ name: "test_error_handling", arguments: {} })).isError, true);
    await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), { code: -32602 });
    // Its argument is in a header too, which the host compares.
    assert.equal(
      text(await client.callTool({ name: "regional", arguments: { region: "Zürich" } })),
      "Zürich",
    );
    await client.close();
  });

  for (const mode of ["auto", "legacy"] as const) {
    it(`progress (${mode}) arrives before the result`, async () => {
      const client = await connected(mode);
      const reported: unknown[] = [];
      const onprogress = (progress: { progress: number }) => reported.push(progress.progress);
      const name = "test_tool_with_progress";
      assert.equal(text(await client.callTool({ name, arguments: {} }, { onprogress })), "done");
      assert.deepEqual(reported, [0, 50, 100]);
      await client.close();
    });

    it(`a plugin in the folder of the running host (${mode}) changes the list of tools`, async () => {
      let listed: string[] = [];
      const onChanged = (_: unknown, tools: { name: string }[] | null) => {
        listed = (tools ?? []).map((tool) => tool.name);
      };
      const client = await connected(mode, {}, { tools: { onChanged } });
      const plugin = join(host.folder, "plugins/conformance.wasm");
      const kept = readFileSync(plugin);
      rmSync(plugin);
      await until("a list without the plugin", () => listed.join() === "toolgate_wait" || undefined);
      writeFileSync(plugin, kept);
      await until("a list with the plugin", () => listed.includes("gated_greet") || undefined);
      await client.close();
    });

    it(`lane wait (${mode}): the same request joins the call, and toolgate_wait has its outcome`, async () => {
      const client = await connected(mode);
      const id = `chosen-${mode}`;
      const call = () =>
        client.callTool({ name: "gated_greet", arguments: { name: mode }, _meta: { [CALL_ID]: id } });
      const lost = assert.rejects(call());
      const before = await host.pending("gated_greet");
      await host.restart();
      await lost;

      const again = call();
      const wait = client.callTool({ name: "toolgate_wait", arguments: { call: id } });
      assert.equal((await host.pending("gated_greet")).suspension, before.suspension);
      await host.approve(before.suspension);
      assert.equal(text(await again), `Hello, ${mode}!`);
      assert.equal(text(await wait), `Hello, ${mode}!`);
      await client.close();
    });
  }

  it("lane form: the user of the client answers", async () => {
    const client = await connected("auto", { elicitation: { form: {} } });
    const asked: string[] = [];
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      asked.push(params.message);
      await host.restart();
      return { action: "accept", content: asked.length === 1 ? { name: "Ann" } : { color: "blue" } };
    });
    const result = await client.callTool({ name: "test_input_required_result_multi_round", arguments: {} });
    assert.equal(text(result), "Ann likes blue");
    assert.equal(asked.length, 2, asked.join("; "));
    await client.close();
  });

  it("lane form: a question that is declined stays open for others", async () => {
    const client = await connected("auto", { elicitation: { form: {} } });
    client.setRequestHandler("elicitation/create", async () => ({ action: "decline" }));
    const result = await client.callTool({ name: "confirm_delete", arguments: { filename: "b.txt" } });
    assert.match(text(result), /waits for a person's answer/);
    const { suspension } = await host.pending("confirm_delete");
    await host.command(["answer", suspension, '{"confirm":false}']);
    const [, call] = /"call":"([^"]+)"/.exec(text(result)) ?? [];
    assert.equal(
      text(await client.callTool({ name: "toolgate_wait", arguments: { call } })),
      "b.txt is kept",
    );
    await client.close();
  });

  it("lane page: an approval is a page, which approves nothing", async () => {
    const client = await connected("auto", { elicitation: { url: {} } });
    let opened = "";
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      assert(params.mode === "url");
      opened = params.url;
      const { suspension } = await host.pending("gated_greet");
      assert.equal(opened, `${host.url}/suspensions/${suspension}`);
      await host.restart();
      assert.equal((await host.pending("gated_greet")).suspension, suspension);
      setImmediate(() => void host.approve(suspension));
      return { action: "accept" };
    });
    const result = await client.callTool({ name: "gated_greet", arguments: { name: "Dee" } });
    assert.equal(text(result), "Hello, Dee!");
    assert.notEqual(opened, "");
    await client.close();
  });

  it("lane card: the card's tool knows the call after a kill too", async () => {
    const client = await connected("auto", { extensions: { [CARDS]: { mimeTypes: [CARD] } } });
    const { tools } = await client.listTools();
    const declared = (name: string) => tools.find((tool) => tool.name === name)?._meta?.ui;
    assert.deepEqual(declared("gated_greet"), { resourceUri: "ui://toolgate/call.html" });
    assert.deepEqual(declared("toolgate_state"), { visibility: ["app"] });
    assert.equal(declared("greet"), undefined);
    const { contents } = await client.readResource({ uri: "ui://toolgate/call.html" });
    assert.equal(contents[0]?.mimeType, CARD);
    assert(contents[0] !== undefined && "text" in contents[0]);
    assert.match(contents[0].text, /toolgate_state/);

    const call = () =>
      client.callTool({ name: "gated_greet", arguments: { name: "Eva" }, _meta: { [CALL_ID]: "card" } });
    /** The state that the card shows. */
    const state = async () => {
      const result = await client.callTool({ name: "toolgate_state", arguments: { call: "card" } });
      return result._meta?.["dev.toolgate/call"] as Record<string, unknown>;
    };
    const lost = assert.rejects(call());
    const { suspension } = await host.pending("gated_greet");
    const shown = await state();
    assert.equal(shown.state, "waiting");
    const { id, page } = shown.suspension as { id: string; page: string };
    assert.deepEqual({ id, page }, { id: suspension, page: `${host.url}/suspensions/${suspension}` });
    await host.restart();
    await lost;

    assert.deepEqual(await state(), shown);
    const again = call();
    await host.approve(suspension);
    assert.equal(text(await again), "Hello, Eva!");
    assert.equal((await state()).outcome, "ok");
    await client.close();
  });

  it("a client without cards does not get the tool of the card", async () => {
    const client = await connected("auto");
    const { tools } = await client.listTools();
    assert(!tools.some(({ name }) => name === "toolgate_state"));
    await client.close();
  });

  /** A session that uses tasks. The SDK does not send them itself, so its package takes a function that does. */
  function withTasks(client: Client, answer: () => Promise<Record<string, boolean>>): TaskEnabledSession {
    const raw = new Raw(host, token, {});
    const rawDispatch: RawClientDispatch = async (request) => {
      const { method, params } = request as { method: string; params: Members };
      const { result, error } = await raw.ask(method, params);
      return error === undefined ? { kind: "result", result: result as JsonValue } : { kind: "error", error };
    };
    const never = () => assert.fail("the host asked for something else");
    return createTaskSessionFromClient(client, {
      endpointId: "toolgate",
      rawDispatch,
      v2RequestFraming: {
        protocolVersion: REVISION,
        clientInfo: INFO,
        clientCapabilities: { elicitation: { form: {} } },
      },
      onInputRequest: createApplicationInputHandler({
        elicitation: async () => ({ action: "accept", content: await answer() }),
        sampling: never,
        roots: never,
      }),
    });
  }

  it("lane task: the task asks, also after a kill", async () => {
    const client = await connected("auto");
    const session = withTasks(client, async () => {
      await host.restart();
      return { confirm: true };
    });
    const execution = await session.callTool("confirm_delete", { filename: "a.txt" });
    assert.equal(execution.kind, "task");
    assert.equal(text(resultFromTaskOutcome((await execution.settle()).outcome)), "a.txt is deleted");
    await session.close();
    await client.close();
  });

  it("lane task: another session resumes it after a kill", async () => {
    const never = () => assert.fail("an approval is not asked in the client");
    const client = await connected("auto");
    const session = withTasks(client, never);
    const execution = await session.callTool("gated_greet", { name: "Bea" });
    assert(execution.kind === "task");
    const reference = execution.serializeReference();
    const { suspension } = await host.pending("gated_greet");
    await host.kill();
    await execution.detach();
    await session.close();
    await client.close();
    await host.start();

    const next = await connected("auto");
    const resumed = withTasks(next, never);
    const resumption = await resumed.resumeTask(reference);
    await host.approve(suspension);
    assert.equal(text(resultFromTaskOutcome((await resumption.settle()).outcome)), "Hello, Bea!");

    await host.restart();
    const last = await resumed.resumeTask(reference);
    assert.equal(text(resultFromTaskOutcome((await last.settle()).outcome)), "Hello, Bea!");
    await resumed.close();
    await next.close();
  });

  it("lane task: a cancelled task ends its call", async () => {
    const client = await connected("auto");
    const session = withTasks(client, () => assert.fail("nothing is asked"));
    const execution = await session.callTool("gated_greet", { name: "Cem" });
    await host.pending("gated_greet");
    await execution.cancel();
    await until("the end of the call", async () => {
      const open = await host.command(["pending", "--json"]);
      return open.includes("gated_greet") ? undefined : true;
    });
    await session.close();
    await client.close();
  });
});

describe("the SDK for TypeScript over a pipe", () => {
  // The command starts the host.
  const host = new Host();
  const clients: Client[] = [];
  after(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await host.dispose();
  });

  async function connected(mode: "auto" | "legacy", capabilities = {}) {
    const client = new Client(INFO, { capabilities, versionNegotiation: { mode } });
    clients.push(client);
    const words = { command: BINARY, args: ["mcp", "--config", "toolgate.toml"], stderr: "ignore" as const };
    const transport = new StdioClientTransport({ ...words, cwd: host.folder, env: environment() });
    await client.connect(transport);
    return { client, transport };
  }

  for (const mode of ["auto", "legacy"] as const) {
    it(`lane form (${mode}): the user of the client answers`, async () => {
      const { client } = await connected(mode, { elicitation: { form: {} } });
      const asked: string[] = [];
      client.setRequestHandler("elicitation/create", async ({ params }) => {
        asked.push(params.message);
        return { action: "accept", content: asked.length === 1 ? { name: "Ann" } : { color: "blue" } };
      });
      const name = "test_input_required_result_multi_round";
      assert.equal(text(await client.callTool({ name, arguments: {} })), "Ann likes blue");
      assert.equal(asked.length, 2, asked.join("; "));
      await client.close();
    });

    it(`a call (${mode}) survives the command that has the host`, async () => {
      const call = (client: Client) => client.callTool({ name: "gated_greet", arguments: { name: mode } });
      const first = await connected(mode);
      const lost = assert.rejects(call(first.client));
      const before = await host.pending("gated_greet");
      assert(first.transport.pid !== null);
      process.kill(first.transport.pid, "SIGKILL");
      await lost;

      const { client } = await connected(mode);
      const again = call(client);
      assert.equal((await host.pending("gated_greet")).suspension, before.suspension);
      await host.approve(before.suspension);
      assert.equal(text(await again), `Hello, ${mode}!`);
      // It ends its host.
      await client.close();
    });
  }
});
