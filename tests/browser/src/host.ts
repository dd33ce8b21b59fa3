// Runs the real host as a process: on a free port, with its own folders. Tests can kill and restart it. `tests/src/host.rs` does the
// same for the tests in Rust.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "./client";
import { plugin, ROOT } from "./components";

/** The host prints this when it answers, and then this when its plugins are loaded. */
const LISTENS = "toolgate listens on ";
const READY = "ready: ";

/** Variables that point a developer's commands to another host. */
const VARIABLES = ["URL", "TOKEN", "DATA", "CONFIG", "CONVERSATION", "LOG"].map((name) => `TOOLGATE_${name}`);

export interface Setup {
  /** Example plugins, by their names. */
  plugins?: string[];
  /** Other components, by name. */
  components?: Record<string, Buffer>;
  /** Additional tables of the configuration. */
  tables?: string;
  /** Additional files by name, such as secrets. */
  files?: Record<string, string>;
  /** Whether the test expects a rejected component. */
  isRefused?: boolean;
}

export class Host {
  readonly folder = mkdtempSync(join(tmpdir(), "toolgate-browser-"));
  /** The address; the same after a restart. */
  url = "";
  #child: ChildProcess | undefined;
  readonly #isRefused: boolean;

  /** Makes the folders, without starting the host. */
  constructor({ plugins = [], components = {}, tables = "", files = {}, isRefused = false }: Setup) {
    this.#isRefused = isRefused;
    mkdirSync(join(this.folder, "plugins"));
    const all = { ...Object.fromEntries(plugins.map((name) => [name, plugin(name)])), ...components };
    for (const [name, bytes] of Object.entries(all))
      writeFileSync(join(this.folder, "plugins", `${name}.wasm`), bytes);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.folder, name), text);
    const settings = 'plugins = "plugins"\ndata = "data"\npool = 64\n';
    writeFileSync(join(this.folder, "toolgate.toml"), `${settings}${tables}`);
  }

  /** Starts the host, at its previous address if it has one. Returns when it is ready. */
  async start(): Promise<void> {
    const listen = this.url === "" ? "127.0.0.1:0" : this.url.slice("http://".length);
    const log = openSync(join(this.folder, "host.log"), "a");
    const words = [
      "serve",
      "--listen",
      listen,
      "--log",
      "info",
      "--config",
      join(this.folder, "toolgate.toml"),
    ];
    const child = spawn(binary(), words, { env: environment(), stdio: ["ignore", "pipe", log] });
    closeSync(log);
    this.#child = child;
    if (child.stdout === null) throw new Error("the host's output is not piped");
    const lines = createInterface({ input: child.stdout });
    // The output must be read until the end, otherwise the host ends.
    this.url = await new Promise((resolve, reject) => {
      let url = "";
      lines.on("line", (line) => {
        if (line.startsWith(LISTENS)) url = line.slice(LISTENS.length).trim();
        if (line.startsWith(READY)) resolve(url);
      });
      lines.on("close", () =>
        reject(new Error(`the host ended and did not say where it listens:\n${this.log}`)),
      );
    });
    this.#expectLoaded();
  }

  #expectLoaded(): void {
    if (this.log.includes("plugin rejected") !== this.#isRefused)
      throw new Error(`the components are not as the test says:\n${this.log}`);
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

  /** Kills the host and removes its folder. */
  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A new principal with these roles. */
  token(name: string, roles: string[], groups: string[] = []): Client {
    const words = ["token", "create", "--name", name];
    words.push(
      ...roles.flatMap((role) => ["--role", role]),
      ...groups.flatMap((group) => ["--group", group]),
    );
    const said = execFileSync(binary(), words, { cwd: this.folder, env: environment(), stdio: "pipe" });
    return new Client(() => this.url, String(said).trim());
  }

  /** The end of the log. */
  get log(): string {
    const path = join(this.folder, "host.log");
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(-200).join("\n") : "";
  }
}

function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !VARIABLES.includes(name)));
}

let checked: string | undefined;

/** The binary under test, which `cargo xtask test` sets. */
function binary(): string {
  if (checked !== undefined) return checked;
  const path = process.env.TOOLGATE_BINARY ?? join(ROOT, "target/debug/toolgate");
  if (!existsSync(path)) throw new Error(`${path} is missing: run \`cargo build --workspace\``);
  const newer = newerSource(path);
  if (newer)
    throw new Error(`${path} was built before ${newer} was changed: run \`cargo build --workspace\``);
  checked = path;
  return path;
}

/** A source file that is newer than the binary, so that the tests would run old code. */
function newerSource(path: string): string | undefined {
  const list = `${path}.d`;
  if (!existsSync(list)) return undefined;
  const sources = readFileSync(list, "utf8").trimEnd().split(": ")[1] ?? "";
  const built = statSync(path).mtimeMs;
  const changed = (source: string) => existsSync(source) && statSync(source).mtimeMs > built;
  return sources
    .replaceAll("\\ ", "\0")
    .split(" ")
    .map((source) => source.replaceAll("\0", " "))
    .find(changed);
}
