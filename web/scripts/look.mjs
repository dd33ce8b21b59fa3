// Opens every page of a running console in both themes and sizes, takes a picture, and runs axe-core.
// `node scripts/look.mjs URL TOKEN [FOLDER]`; exits with 1 after a serious finding.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { launch, loggedIn, SIZES, settled, THEMES } from "./browser.mjs";

const [url, token, folder = "../target/console-look"] = process.argv.slice(2);
if (!token) {
  console.error("usage: node scripts/look.mjs URL TOKEN [FOLDER]");
  process.exit(2);
}

const PAGES = {
  inbox: "/",
  conversations: "/conversations",
  timeline: `/conversations/${process.env.CONVERSATION ?? "demo"}`,
  plugins: "/plugins",
  audit: "/audit",
  standing: "/standing",
  policy: "/policy",
  none: "/nowhere",
};

/** Must be visible on a page beside its title. */
const SHOWS = { inbox: "toolgate-inbox", timeline: ".turn" };

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let bad = 0;

async function examine(page, name) {
  // Evaluated by the browser's debugger, because the page's policy refuses scripts from other sites.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"] }),
  );
  for (const { id, impact, nodes } of violations) {
    if (impact === "serious" || impact === "critical") bad += 1;
    console.log(
      `${name}: ${impact}: ${id}: ${nodes
        .map(({ target, failureSummary }) => `${target} ${failureSummary?.split("\n")[1] ?? ""}`)
        .slice(0, 4)
        .join(" | ")}`,
    );
  }
  const width = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (width > 0) {
    bad += 1;
    console.log(`${name}: the page is ${width} px wider than the window`);
  }
}

mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const theme of THEMES) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    const page = await loggedIn(browser, { url, token, theme, size: viewport });
    for (const [name, path] of Object.entries(PAGES)) {
      await page.goto(path);
      await settled(page, SHOWS[name]);
      const shot = `${name}-${size}-${theme}`;
      await page.screenshot({ path: join(folder, `${shot}.png`), fullPage: size === "phone" });
      await examine(page, shot);
    }
    for (const complaint of page.complaints) {
      bad += 1;
      console.log(`complaint: ${complaint}`);
    }
    await page.context().close();
  }
}
await browser.close();
console.log(bad === 0 ? "nothing serious" : `${bad} findings`);
process.exitCode = bad === 0 ? 0 : 1;
