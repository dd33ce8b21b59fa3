// Runs the real host as a process, on a free port, with the fixture plugin and a folder of its own. Tests can kill and restart it.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";

const ROOT = resolve(import.meta.dirname, "../../..");

/** The binary under test, which `cargo xtask test` sets. */
export const BINARY = process.env.TOOLGATE_BINARY ?? join(ROOT, "target/debug/toolgate");

const PLUGIN = join(ROOT, "plugins/target/wasm32-wasip2/release/conformance.wasm");

/** The host prints this when it answers, and then this when its plugins are loaded. */
const LISTENS = "toolgate listens on ";
const READY = "ready: ";

/** How long a condition may take to become true, and how often it is looked at, in milliseconds. */
const PATIENCE = 60_000;
const LOOK = 50;

/** An open suspension. */
export interface Pending {
  suspension: string;
  tool: string;
  arguments: unknown;
  caller: string;
}

/** Looks until there is a value. */
export async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`${what} does not happen`);
    await pause(LOOK);
  }
}

export class Host {
  readonly folder = mkdtempSync(join(tmpdir(), "toolgate-mcp-"));
  /** The address; the same after a restart. */
  url = "";
  #child: ChildProcess | undefined;

  /** Makes the folders, without starting the host. Pages of these origins may use it. */
  constructor(origins: string[] = []) {
    for (const file of [BINARY, PLUGIN]) if (!existsSync(file)) throw new Error(`${file} is not built`);
    mkdirSync(join(this.folder, "plugins"));
    copyFileSync(PLUGIN, join(this.folder, "plugins/conformance.wasm"));
    const settings = 'plugins = "plugins"\ndata = "data"\n';
    writeFileSync(
      join(this.folder, "toolgate.toml"),
      `${settings}[server]\norigins = ${JSON.stringify(origins)}\n`,
    );
  }

  /** Adds settings, which count from the next start. */
  configure(settings: string): void {
    appendFileSync(join(this.folder, "toolgate.toml"), settings);
  }

  /** Starts the host, at its previous address if it has one. Returns when it is ready. */
  async start(): Promise<void> {
    const listen = this.url === "" ? "127.0.0.1:0" : this.url.slice("http://".length);
    const log = openSync(join(this.folder, "host.log"), "a");
    const words = ["serve", "--listen", listen, "--config", "toolgate.toml"];
    const child = spawn(BINARY, words, {
      cwd: this.folder,
      env: environment(),
      stdio: ["ignore", "pipe", log],
    });
    closeSync(log);
    this.#child = child;
    if (child.stdout === null) throw new Error("the host's output is not piped");
    const lines = createInterface({ input: child.stdout });
    this.url = await new Promise((fulfil, reject) => {
      let url = "";
      // The output must be read until the end, otherwise the host ends.
      lines.on("line", (line) => {
        if (line.startsWith(LISTENS)) url = line.slice(LISTENS.length).trim();
        if (line.startsWith(READY)) fulfil(url);
      });
      lines.on("close", () =>
        reject(new Error(`the host ended:\n${readFileSync(join(this.folder, "host.log"), "utf8")}`)),
      );
    });
  }

  /** Kills the host with SIGKILL, and waits for its end. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  /** Kills it and starts it again. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Kills the host and removes its folder. */
  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs a command of the binary, and returns its output. */
  async command(words: string[], token?: string): Promise<string> {
    const env = { ...environment(), ...(token !== undefined && { TOOLGATE_TOKEN: token }) };
    const ran = promisify(execFile)(BINARY, [...words, "--config", "toolgate.toml"], {
      cwd: this.folder,
      env,
    });
    return (await ran).stdout;
  }

  /** The token of a new principal. */
  async token(name: string, role: string): Promise<string> {
    return (await this.command(["token", "create", "--name", name, "--role", role])).trim();
  }

  /** The open suspension of a call of this tool. */
  async pending(tool: string): Promise<Pending> {
    return until(`a call of ${tool} that waits`, async () => {
      // Until a host runs, the command fails.
      const said = await this.command(["pending", "--json"]).catch(() => "");
      const lines = said.split("\n").filter((line) => line !== "");
      return lines.map((line) => JSON.parse(line) as Pending).find((pending) => pending.tool === tool);
    });
  }

  /** Approves it as somebody else. */
  async approve(suspension: string): Promise<void> {
    this.#approver ??= await this.token("approver", "approver");
    await this.command(["approve", suspension], this.#approver);
  }
  #approver: string | undefined;
}

/** The environment without the variables that point a developer's commands to another host. */
export function environment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("TOOLGATE_"));
  return Object.fromEntries(kept.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
