// Makes the pictures of docs/console.md from a new host with the example plugins: `npm run screenshots -w web`, after
// `cargo xtask build` or `cargo xtask demo`. The variables BINARY, PLUGINS and CHROMIUM replace the defaults.

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { launch, loggedIn, SIZES, settled, THEMES } from "./browser.mjs";

const ROOT = resolve(import.meta.dirname, "../..");
const BINARY = process.env.BINARY ?? join(ROOT, "target/debug/toolgate");
const PLUGINS = process.env.PLUGINS ?? join(ROOT, "plugins/target/wasm32-wasip2/release");
const FOLDER = join(ROOT, "target/console-pictures");
const IMAGES = join(ROOT, "docs/images");
const CONVERSATION = "household";
/** A whole card with an edit. */
const TALL = { width: 1280, height: 1100 };

const CONFIGURATION = `
plugins = "plugins"
data = "data"

[plugin.ledger]
component = "any"
grants.keyvalue = true

[[policy]]
tools = "ledger_transfer"
rule = "ask"
name = "large-payments"
reason = "payments of 20.00 and more need two of finance"
risk = "high"
arguments = [ { pointer = "/amount_cents", min = 2000 } ]
match = [ { tool = "ledger_transfer", arguments = { amount_cents = 2500 } } ]

[[policy.needs]]
who = ["group:finance"]
quorum = 2
`;

const call = (id, tool, args) => ({ id, tool, arguments: args });
const POINTS = Array.from({ length: 40 }, (_, n) => [(n * 7919) % 101, (n * 104_729) % 97]);
const FIRST = [
  call("c1", "ledger_open", { account: "household", opening_balance: 10_000 }),
  call("c2", "ledger_open", { account: "landlord", opening_balance: 10_000 }),
];
const SECOND = [
  call("c3", "text_stats", {
    text: "Call me Ishmael. Some years ago, never mind how long precisely.",
    top: 3,
  }),
  call("c4", "cluster", { points: POINTS, clusters: 3, starts: 5 }),
  call("c5", "ledger_transfer", {
    from: "household",
    to: "landlord",
    amount_cents: 2500,
    memo: "rent, the part for the garage",
  }),
  call("c6", "ask_user", {
    question: "On which day shall the next rent be paid?",
    choices: ["Friday", "Monday"],
  }),
  call("c7", "ledger_transfer", { from: "household", to: "landlord", amount_cents: 150, memo: "stamps" }),
];

function freePort() {
  return new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
}

function toolgate(...words) {
  return new Promise((done, failed) => {
    const child = spawn(BINARY, [...words, "--config", join(FOLDER, "toolgate.toml")], { cwd: FOLDER });
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
    });
    child.stderr.on("data", (chunk) => {
      text += chunk;
    });
    child.on("exit", (code) =>
      code === 0 ? done(text) : failed(new Error(`toolgate ${words.join(" ")}: ${text}`)),
    );
  });
}

async function token(name, ...options) {
  const printed = await toolgate("token", "create", "--name", name, ...options);
  return /tg_\S+/.exec(printed)[0];
}

async function ask(url, bearer, path, body) {
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(url + path, init);
  const answer = await response.json();
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer;
}

async function started(url, admin) {
  const wanted = ["cluster", "ledger_transfer", "text_stats", "ask_user"];
  for (let attempt = 0; attempt < 600; attempt += 1) {
    // Before the host is up, there is no token and no response.
    const live = await Promise.resolve()
      .then(() => ask(url, admin(), "/v1/tools"))
      .then(({ tools }) => tools.map(({ name }) => name))
      .catch(() => []);
    if (wanted.every((name) => live.includes(name))) return;
    await pause(100);
  }
  throw new Error("the host does not come up; its log is target/console-pictures/host.log");
}

function fill() {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(join(FOLDER, "plugins"), { recursive: true });
  writeFileSync(join(FOLDER, "toolgate.toml"), CONFIGURATION);
  for (const name of ["ask", "crunch", "ledger", "textkit"]) {
    cpSync(join(PLUGINS, `${name}.wasm`), join(FOLDER, "plugins", `${name}.wasm`));
  }
}

/** The pictures show three calls that ended, one vote of two with an edit, and a question. */
async function prepare(url) {
  const admin = readFileSync(join(FOLDER, "data/admin-token"), "utf8").trim();
  const agent = await token("agent", "--role", "caller");
  const alice = await token("alice", "--role", "approver", "--group", "finance");
  const bob = await token("bob", "--role", "approver", "--role", "admin", "--group", "finance");
  const turns = `/v1/conversations/${CONVERSATION}/turns`;
  await ask(url, agent, `${turns}?wait_ms=20000`, { calls: FIRST });
  await ask(url, agent, turns, { calls: SECOND, context: { ticket: "HOME-12", environment: "production" } });
  // The two calls without an approval end first.
  let waiting = [];
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const { suspensions } = await ask(url, admin, "/v1/pending");
    const audit = await ask(url, admin, "/v1/audit?action=call.settled&limit=100");
    waiting = suspensions;
    if (suspensions.length === 3 && audit.entries.length >= 4) break;
    await pause(100);
  }
  const of = (name) => waiting.find(({ call: id }) => id === name).suspension;
  await ask(url, alice, `/v1/suspensions/${of("c5")}/resolve`, {
    decision: "approve",
    arguments: { ...SECOND.find(({ id }) => id === "c5").arguments, amount_cents: 2400 },
    comment: "the landlord agreed to 24.00",
  });
  await ask(url, alice, `/v1/suspensions/${of("c7")}/resolve`, {
    decision: "deny",
    comment: "there are stamps in the drawer",
  });
  return { bob, approval: of("c5"), question: of("c6") };
}

async function picture(page, name, shows) {
  await settled(page, shows);
  await page.screenshot({ path: join(IMAGES, `${name}.png`) });
  console.log(`docs/images/${name}.png`);
}

const scrolledTo = (locator) =>
  locator.evaluate((one) => {
    one.scrollIntoView();
    scrollBy(0, -24);
  });

async function pictures(browser, url, { bob, approval, question }) {
  for (const theme of THEMES) {
    const page = await loggedIn(browser, { url, token: bob, theme, size: SIZES.desk });
    await picture(page, `inbox-${theme}`, "toolgate-approval");
    await page.goto(`/suspensions/${approval}`);
    await page.setViewportSize(TALL);
    await picture(page, `card-${theme}`, "toolgate-approval");
    await page.setViewportSize(SIZES.desk);
    await page.goto(`/suspensions/${question}`);
    await picture(page, `form-${theme}`, "toolgate-elicitation form");
    await page.goto(`/conversations/${CONVERSATION}`);
    await page.getByText("ask_user").first().waitFor();
    await scrolledTo(page.locator(".turn .call").filter({ hasText: "ledger_transfer" }).first());
    await picture(page, `timeline-${theme}`, ".turn");
    await page.context().close();
  }
  const phone = await loggedIn(browser, { url, token: bob, theme: "light", size: SIZES.phone });
  await picture(phone, "phone-light", "toolgate-approval");
}

fill();
mkdirSync(IMAGES, { recursive: true });
const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const log = openSync(join(FOLDER, "host.log"), "w");
const serve = ["serve", "--config", "toolgate.toml", "--listen", `127.0.0.1:${port}`];
const host = spawn(BINARY, serve, { cwd: FOLDER, stdio: ["ignore", log, log] });
const browser = await launch();
try {
  await started(url, () => readFileSync(join(FOLDER, "data/admin-token"), "utf8").trim());
  await pictures(browser, process.env.CONSOLE ?? url, await prepare(url));
} finally {
  await browser.close();
  host.kill();
}
