// The configurations of the how-to page, against the command lines of the clients that npm has. `mcp install` writes the first of each section.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { BINARY, environment, Host } from "../src/host.ts";

const PAGE = readFileSync(
  resolve(import.meta.dirname, "../../../docs/how-to/use-from-mcp-clients.md"),
  "utf8",
);
const MODULES = resolve(import.meta.dirname, "../node_modules");

/** Keeps the clients from the network. */
const OFFLINE = {
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  GEMINI_CLI_TRUST_WORKSPACE: "true",
};

/** The sections of the page, the file that each names, and the program of a client that npm has. */
const CLIENTS: { title: string; id: string; file: string; program?: string }[] = [
  { title: "Claude Code", id: "claude-code", file: ".mcp.json" },
  { title: "Claude Desktop", id: "claude-desktop", file: ".config/Claude/claude_desktop_config.json" },
  { title: "Codex", id: "codex", file: ".codex/config.toml", program: ".bin/codex" },
  { title: "Cursor", id: "cursor", file: ".cursor/mcp.json" },
  { title: "Gemini CLI", id: "gemini", file: ".gemini/settings.json", program: ".bin/gemini" },
  { title: "opencode", id: "opencode", file: "opencode.json", program: "opencode-linux-x64/bin/opencode" },
  { title: "VS Code", id: "vscode", file: ".vscode/mcp.json" },
  { title: "Windsurf", id: "windsurf", file: ".codeium/windsurf/mcp_config.json" },
];

/** The configurations of a section: over a pipe, and over HTTP. */
function configurations(title: string): string[] {
  const section = PAGE.split(/^#{2,3} /m).find((part) => part.startsWith(`${title}\n`));
  assert.ok(section !== undefined, `the page has no section ${title}`);
  return [...section.matchAll(/^```(?:json|ini)\n(.*?)^```/gms)].map((found) => found[1] ?? "");
}

/** A configuration without the differences of spaces. */
function plain(text: string): unknown {
  return text.startsWith("[") ? text.trim() : JSON.parse(text);
}

describe("the clients of the how-to page", () => {
  const host = new Host();
  let token = "";
  before(async () => {
    await host.start();
    token = await host.token("client", "caller");
  });
  after(() => host.dispose());

  for (const { title, id, file, program } of CLIENTS) {
    it(title, async () => {
      // The user's home is also the folder of the project.
      const home = mkdtempSync(join(tmpdir(), "toolgate-client-"));
      const env = { ...environment(), ...OFFLINE, HOME: home, TOOLGATE_TOKEN: token };
      const run = async ([program = "", ...words]: string[]): Promise<string> => {
        const ran = await promisify(execFile)(program, words, { cwd: home, env });
        return ran.stdout + ran.stderr;
      };
      try {
        const [data, plugins] = ["data", "plugins"].map((name) => join(host.folder, name));
        const real = (text: string) =>
          text
            .replace("/usr/local/bin/toolgate", BINARY)
            .replace("/srv/toolgate/data", data ?? "")
            .replace("/srv/toolgate/plugins", plugins ?? "")
            .replace("http://127.0.0.1:7420", host.url);
        const [pipe, http, ...more] = configurations(title).map(real);
        assert.ok(pipe !== undefined && more.length === 0);
        await run([BINARY, "mcp", "install", id, "--yes", "--data", data ?? "", "--plugins", plugins ?? ""]);
        assert.deepEqual(plain(readFileSync(join(home, file), "utf8")), plain(pipe));
        // npm has opencode for one kind of machine.
        if (program === undefined || (id === "opencode" && process.arch !== "x64")) return;

        for (const text of [pipe, http]) {
          assert.ok(text !== undefined, "the section has a configuration for HTTP");
          mkdirSync(dirname(join(home, file)), { recursive: true });
          writeFileSync(join(home, file), text);
          const said = await run([
            join(MODULES, program),
            "mcp",
            "list",
            ...(id === "codex" ? ["--json"] : []),
          ]);
          if (id === "codex") {
            // Its command line lists servers and does not connect to them.
            const [server] = JSON.parse(said.slice(said.indexOf("["), said.lastIndexOf("]") + 1));
            const { type, command, args, url, bearer_token_env_var: variable } = server.transport;
            const found = type === "stdio" ? [command, ...args] : [url, variable];
            const wanted: string[] =
              text === pipe
                ? [BINARY, "mcp", "--data", data ?? "", "--plugins", plugins ?? ""]
                : [`${host.url}/mcp`, "TOOLGATE_TOKEN"];
            assert.deepEqual([server.name, server.enabled, found], ["toolgate", true, wanted]);
          } else {
            assert.match(said, /toolgate.*(?<!dis)connected/i, text);
          }
        }
      } finally {
        rmSync(home, { recursive: true, force: true });
      }
    });
  }
});
