// Published MCP servers: how each is started, and what it answers to `tools/list` over its standard input and output.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** A tool, with its schema as a JSON text. A library also checks some arguments by itself. */
export type Tool = {
  name: string;
  description: string;
  parameters: string;
  accepted?: unknown[];
  refused?: unknown[];
};

/** The tools of one server or library. */
export type List = { from: string; tools: Tool[] };

/** A server: its package, its program if the package has several, its arguments and its environment. */
export type Server = { from: string; program?: string; words?: string[]; variables?: Record<string, string> };

/** The folder that each server runs in. Servers that want a folder get this one. */
const HERE = ".";

/** The servers refuse to start without these, and use them only when a tool is called. */
const NONE = "none";

export const servers: Server[] = [
  { from: "@modelcontextprotocol/server-brave-search", variables: { BRAVE_API_KEY: NONE } },
  { from: "@modelcontextprotocol/server-everything", words: ["stdio"] },
  { from: "@modelcontextprotocol/server-filesystem", words: [HERE] },
  { from: "@modelcontextprotocol/server-github" },
  { from: "@modelcontextprotocol/server-google-maps", variables: { GOOGLE_MAPS_API_KEY: NONE } },
  { from: "@modelcontextprotocol/server-memory" },
  // It connects when a tool is called.
  { from: "@modelcontextprotocol/server-postgres", words: ["postgresql://localhost/none"] },
  { from: "@modelcontextprotocol/server-sequential-thinking" },
  { from: "@modelcontextprotocol/server-slack", variables: { SLACK_BOT_TOKEN: NONE, SLACK_TEAM_ID: NONE } },
  { from: "@notionhq/notion-mcp-server" },
  { from: "@playwright/mcp", words: ["--headless"] },
  { from: "@upstash/context7-mcp" },
  {
    from: "chrome-devtools-mcp",
    program: "chrome-devtools-mcp",
    words: ["--headless", "--no-usage-statistics"],
  },
  { from: "tavily-mcp", variables: { TAVILY_API_KEY: NONE } },
];

/** How long a server may take to answer, in milliseconds. A server that hangs must not hang the test. */
const PATIENCE = 30_000;

type Reply = { id?: number; result?: { tools?: Listed[]; nextCursor?: string }; error?: { message: string } };
type Listed = { name: string; description?: string; inputSchema: unknown };

/** Starts a server, asks it for its tools, and ends it. */
export async function listed(server: Server): Promise<List> {
  const folder = mkdtempSync(join(tmpdir(), "toolgate-published-"));
  const child = spawn(process.execPath, [main(server), ...(server.words ?? [])], {
    cwd: folder,
    // Not the developer's own environment, which may have real keys.
    env: { CI: "1", HOME: folder, PATH: process.env.PATH, ...server.variables },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (part) => {
    said += part;
  });
  const replies = new Map<number, (reply: Reply) => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    try {
      const reply: Reply = JSON.parse(line);
      replies.get(reply.id ?? -1)?.(reply);
    } catch {
      // Some servers greet people on their standard output.
    }
  });
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const ask = (id: number, method: string, params: object) =>
    new Promise<NonNullable<Reply["result"]>>((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`${server.from}: ${method}: ${why}\n${said}`));
      const timer = setTimeout(() => fail(`no reply in ${PATIENCE} ms`), PATIENCE);
      child.once("error", (error) => fail(error.message));
      child.once("exit", (code) => fail(`it ended with ${code}`));
      replies.set(id, ({ result, error }) => {
        clearTimeout(timer);
        if (result) resolve(result);
        else fail(error?.message ?? "it has no result");
      });
      send({ id, method, params });
    });
  try {
    const clientInfo = { name: "toolgate", version: "0.0.0" };
    await ask(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    send({ method: "notifications/initialized" });
    const tools: Listed[] = [];
    let cursor: string | undefined;
    do {
      const page = await ask(tools.length + 2, "tools/list", cursor === undefined ? {} : { cursor });
      tools.push(...(page.tools ?? []));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return { from: server.from, tools: tools.map(tool) };
  } finally {
    child.removeAllListeners();
    child.kill("SIGKILL");
    // A server that ends may still write.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function tool({ name, description, inputSchema }: Listed): Tool {
  return { name, description: description || name, parameters: JSON.stringify(inputSchema) };
}

/** The file of a server's program. */
function main({ from, program }: Server): string {
  const require = createRequire(import.meta.url);
  const folder = require.resolve.paths(from)?.map((path) => join(path, from));
  for (const path of folder ?? []) {
    try {
      const { bin } = require(join(path, "package.json"));
      const file = typeof bin === "string" ? bin : program ? bin[program] : Object.values(bin)[0];
      return join(dirname(join(path, "package.json")), file);
    } catch {
      // It is not in this folder.
    }
  }
  throw new Error(`${from} is not installed; run \`cargo xtask setup\``);
}
