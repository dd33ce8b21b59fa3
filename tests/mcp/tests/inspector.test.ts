// The command line of the public inspector takes a gated call to its end.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { Host } from "../src/host.ts";

const INSPECTOR = join(
  import.meta.dirname,
  "../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
);

/** The member of `_meta` about a call. */
const CALL = "dev.toolgate/call";

/** Its output. */
interface Printed {
  result: {
    content: { text: string }[];
    isError?: boolean;
    _meta: { [CALL]: { call: string; state?: string; outcome?: string; suspension?: { id: string } } };
  };
}

describe("the inspector", () => {
  const host = new Host();
  let token: string;

  before(async () => {
    await host.start();
    token = await host.token("inspector", "caller");
  });
  after(() => host.dispose());

  async function run(...more: string[]): Promise<string> {
    const words = [
      "--cli",
      `${host.url}/mcp`,
      "--transport",
      "http",
      "--format",
      "json",
      "--stored-auth-only",
    ];
    words.push("--header", `Authorization: Bearer ${token}`, "--method", "tools/call", ...more);
    // Its settings stay in the folder of the test.
    const env = { ...process.env, HOME: host.folder, MCP_CATALOG_PATH: join(host.folder, "catalog.json") };
    return (await promisify(execFile)(process.execPath, [INSPECTOR, ...words], { env })).stdout;
  }

  async function call(tool: string, args: object): Promise<Printed["result"]> {
    const stdout = await run("--tool-name", tool, "--tool-args-json", JSON.stringify(args));
    return (JSON.parse(stdout) as Printed).result;
  }

  it("a gated tool has a card, and an ungated one has none", async () => {
    const card = await run("--tool-name", "gated_greet", "--app-info", "--advertise-apps");
    assert.match(card, /ui:\/\/toolgate\/call\.html/);
    await assert.rejects(run("--tool-name", "greet", "--app-info", "--advertise-apps"), { code: 2 });
  });

  it("a gated call waits, is approved, and its outcome is fetched", async () => {
    const waiting = await call("gated_greet", { name: "Ann" });
    const about = waiting._meta[CALL];
    assert.equal(about.state, "waiting", JSON.stringify(waiting));
    assert.match(waiting.content[0]?.text ?? "", /toolgate_wait/);

    await host.restart();
    const pending = await host.pending("gated_greet");
    assert.equal(pending.suspension, about.suspension?.id);
    await host.approve(pending.suspension);

    const outcome = await call("toolgate_wait", { call: about.call });
    assert.equal(outcome._meta[CALL].outcome, "ok");
    assert.equal(outcome.content[0]?.text, "Hello, Ann!");
  });
});
