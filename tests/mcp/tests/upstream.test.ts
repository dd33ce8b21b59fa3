// A server on the official SDK for Python, as an upstream of the host: over a pipe, and over HTTP.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { it } from "node:test";
import { environment, Host } from "../src/host.ts";

/** The Python that has the SDK, which `cargo xtask test` installs. */
const PYTHON = process.env.PYTHON ?? join(import.meta.dirname, "../../../target/tools/mcp/bin/python");

const SERVER = [PYTHON, "-B", join(import.meta.dirname, "../src/server.py")];

it("the SDK for Python as an upstream, over a pipe", async () => {
  await works(`command = ${JSON.stringify(SERVER)}`);
});

it("the SDK for Python as an upstream, over HTTP", async () => {
  const [program = "", ...words] = [...SERVER, "http"];
  const server = spawn(program, words, { env: environment(), stdio: ["ignore", "ignore", "pipe"] });
  try {
    await works(`url = "${await address(createInterface({ input: server.stderr }))}/mcp"`);
  } finally {
    server.kill("SIGKILL");
  }
});

/** The address in the log of a server. */
async function address(log: AsyncIterable<string>): Promise<string> {
  for await (const line of log) {
    const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line);
    if (found) return found[0];
  }
  throw new Error("the server has no address");
}

/** Reviews, accepts and calls the tools of the server at this place. */
async function works(place: string): Promise<void> {
  const host = new Host();
  try {
    const tools =
      '[upstream.python.tools.add]\napproval = "auto"\n[upstream.python.tools.fail]\napproval = "auto"\n';
    host.configure(`[upstream.python]\n${place}\n${tools}`);
    const review = JSON.parse(await host.command(["upstream", "review", "python", "--json"])) as {
      digest: string;
      changes: Record<string, unknown>;
    };
    assert.deepEqual(Object.keys(review.changes).sort(), ["add", "fail", "greet"]);
    await host.command(["upstream", "accept", "python", "--digest", review.digest]);
    await host.start();
    const token = await host.token("agent", "caller");
    const call = async (id: string, tool: string, args: unknown) => {
      const body = JSON.stringify({ calls: [{ id, tool: `python__${tool}`, arguments: args }] });
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const path = `${host.url}/v1/conversations/${id}/turns`;
      const answer = await fetch(`${path}?wait_ms=60000`, { method: "POST", headers, body });
      const turn = (await answer.json()) as { turn: string; calls: { content: unknown; outcome: string }[] };
      const ended = async () => (await fetch(`${path}/${turn.turn}?wait_ms=60000`, { headers })).json();
      return { call: turn.calls[0], ended: ended as () => Promise<typeof turn> };
    };
    const added = await call("one", "add", { a: 2, b: 3 });
    assert.deepEqual(added.call?.content, { ok: true, result: { result: 5 } });
    const failed = await call("two", "fail", {});
    assert.equal(failed.call?.outcome, "failed");
    const asked = await call("three", "greet", { name: "Ada" });
    await host.approve((await host.pending("python__greet")).suspension);
    assert.deepEqual((await asked.ended()).calls[0]?.content, { ok: true, result: { result: "Hello, Ada" } });
  } finally {
    await host.dispose();
  }
}
