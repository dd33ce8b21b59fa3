// The official SDK for Python, over a pipe to `toolgate mcp`. The host behind it is killed while calls wait.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { it } from "node:test";
import { BINARY, environment, Host } from "../src/host.ts";

/** The Python that has the SDK, which `cargo xtask test` installs. */
const PYTHON = process.env.PYTHON ?? join(import.meta.dirname, "../../../target/tools/mcp/bin/python");

it("the SDK for Python: every lane", async () => {
  const host = new Host();
  await host.start();
  const words = ["-B", join(import.meta.dirname, "../src/client.py"), BINARY, host.folder];
  const client = spawn(PYTHON, words, { env: environment(), stdio: ["pipe", "pipe", "pipe"] });
  let errors = "";
  client.stderr.on("data", (text: Buffer) => (errors += text.toString()));
  const ended = new Promise((end) => client.on("close", end));
  const said: string[] = [];
  try {
    for await (const line of createInterface({ input: client.stdout })) {
      said.push(line);
      const [what, of = ""] = line.split(" ");
      let answer = "";
      if (what === "restart") await host.restart();
      else if (what === "pending") answer = (await host.pending(of)).suspension;
      else if (what === "approve") await host.approve(of);
      else break;
      client.stdin.write(`${answer}\n`);
    }
    client.stdin.end();
    assert.equal(await ended, 0, errors);
    assert.equal(said.at(-1), "passed", errors);
    assert.equal(said.filter((line) => line === "restart").length, 8);
  } finally {
    client.kill("SIGKILL");
    await host.dispose();
  }
});
