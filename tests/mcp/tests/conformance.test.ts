// The public conformance suite of the protocol.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Host } from "../src/host.ts";
import { createsTask, type Message } from "../src/messages.ts";
import { TokenProxy } from "../src/proxy.ts";

const FOLDER = join(import.meta.dirname, "..");
const SUITE = join(FOLDER, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** Scenarios that the requirements of a revision do not score. */
const SINGLE = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-status-notifications",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
  "json-schema-2020-12",
  "http-header-validation",
  "http-custom-header-server-validation",
];

/** How many runs there are, each with a principal of its own: the same calls of one principal are one call. */
const RUNS = SINGLE.length + 2;

/** The fault that the schema of the core finds in a result that creates a task. */
const NO_CONTENT = "CallToolResult: must have required property 'content' (result of 'tools/call')";

/** A check in a report of the suite. */
interface Check {
  id: string;
  status: string;
  details?: { violations?: { context: string; errors: string[]; message: Message }[] };
}

describe("conformance", { concurrency: true }, () => {
  let host: Host;
  let proxies: TokenProxy[];

  before(async () => {
    proxies = await Promise.all(Array.from({ length: RUNS }, () => TokenProxy.listen()));
    host = new Host(proxies.map((proxy) => proxy.url));
    await host.start();
    for (const [number, proxy] of proxies.entries()) {
      proxy.target = host.url;
      proxy.token = await host.token(`client-${number}`, "caller");
    }
  });

  after(async () => {
    for (const proxy of proxies) proxy.close();
    await host.dispose();
  });

  /** The schema of the core has no tasks, so the suite says that a result which creates one lacks `content`. No message may have another
   * fault, and the schema of the extension must allow these. */
  function checkFaults(folder: string): void {
    const files = globSync("**/checks.json", { cwd: folder });
    assert.notEqual(files.length, 0);
    for (const file of files) {
      const checks: Check[] = JSON.parse(readFileSync(join(folder, file), "utf8"));
      const failed = checks.filter(({ id, status }) => id === "wire-schema-valid" && status === "FAILURE");
      const violations = failed.flatMap(({ details }) => details?.violations ?? []);
      assert(violations.length >= failed.length, `${file} does not say which messages are wrong`);
      for (const { context, errors, message } of violations) {
        assert.equal(context, "response to 'tools/call'", JSON.stringify(message));
        assert.deepEqual(errors, [NO_CONTENT], JSON.stringify(message));
        createsTask(message.result);
      }
    }
  }

  /** Runs the suite, and returns the expected failures that it saw. The suite itself fails if others are there, or if an expected one passes. */
  async function run(words: string[], expected: string): Promise<string[]> {
    const proxy = proxies.pop();
    assert(proxy !== undefined, "there are more runs than principals");
    const folder = join(host.folder, `reports-${proxies.length}`);
    const all = [SUITE, "server", "--url", `${proxy.url}/mcp`, ...words, "-o", folder];
    all.push("--expected-failures", expected);
    const child = spawn(process.execPath, all, { cwd: host.folder, env: { ...process.env, NO_COLOR: "1" } });
    let said = "";
    for (const output of [child.stdout, child.stderr])
      output.on("data", (text: Buffer) => (said += text.toString()));
    const code = await new Promise((ended) => child.on("close", ended));
    proxy.close();
    assert.equal(code, 0, said);
    checkFaults(folder);
    return [...said.matchAll(/^ {2}~ (.+)$/gm)].map((found) => found[1] ?? "");
  }

  const file = (revision: string) => join(FOLDER, "expected", `${revision}.yml`);

  /** The entries of a list of expected failures. */
  const entries = (revision: string) =>
    [...readFileSync(file(revision), "utf8").matchAll(/^ {2}- (\S+)/gm)].map((found) => found[1]);

  it("revision 2026-07-28 and its extension tasks", async () => {
    const expected = file("2026-07-28");
    const seen = new Set<string>();
    const see = async (words: string[]) => {
      for (const name of await run(words, expected)) seen.add(name);
    };
    // A few at a time: some scenarios expect an answer within a second.
    const left = [...SINGLE];
    const next = async (): Promise<void> => {
      const name = left.shift();
      if (name === undefined) return;
      await see(["--scenario", name, "--spec-version", "2026-07-28", "--force"]);
      await next();
    };
    await Promise.all([see(["--requirements", "2026-07-28"]), next(), next()]);
    assert.deepEqual([...seen].sort(), entries("2026-07-28").sort(), "every entry is a failure of some run");
  });

  it("revision 2025-11-25", async () => {
    const seen = await run(["--suite", "all", "--spec-version", "2025-11-25"], file("2025-11-25"));
    assert.deepEqual([...new Set(seen)].sort(), entries("2025-11-25").sort());
  });
});
