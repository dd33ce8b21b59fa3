// Chromium as the console's scripts use it.

import { setTimeout as pause } from "node:timers/promises";
import { chromium } from "playwright-core";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const THEMES = ["light", "dark"];
export const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

/** A browser; the path of another Chromium can stand in the variable CHROMIUM. */
export function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: ARGUMENTS });
}

/** A page of its own, logged in with the token, that fails the script where the page complains. */
export async function loggedIn(browser, { url, token, theme, size }) {
  const context = await browser.newContext({
    baseURL: url,
    colorScheme: theme,
    viewport: size,
    reducedMotion: "reduce",
    locale: "en-GB",
    timezoneId: "UTC",
  });
  const page = await context.newPage();
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    // Chromium reports every answer of 401 as an error; that nobody is logged in yet is none.
    if (message.type() === "error" && !message.text().includes("401"))
      page.complaints.push(`${page.url()}: ${message.text()}`);
  });
  await page.goto("/login");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Inbox", level: 1 }).waitFor();
  return page;
}

/** After so many milliseconds a page that still loads something hangs. */
const LONGEST = 30_000;

/**
 * Waits until a page shows what it has: no outline of what is on its way, no list or form that still loads, no card in the
 * moment in which it takes no answer yet. `shows` is what has to be there besides. What is waited for is on the page; streams
 * keep the network busy for ever.
 */
export async function settled(page, shows = "h1") {
  await page.locator(shows).first().waitFor();
  const isSettled = page.evaluate(async () => {
    const within = (root, selector) => [
      ...root.querySelectorAll(selector),
      ...[...root.querySelectorAll("*")].flatMap((one) =>
        one.shadowRoot ? within(one.shadowRoot, selector) : [],
      ),
    ];
    const text = (element, part) => element.shadowRoot.querySelector(`[part~="${part}"]`)?.textContent ?? "";
    const isShown = (card) =>
      card.suspension !== undefined &&
      (card.localName !== "toolgate-elicitation" || text(card, "form") !== "") &&
      (card.isReady || card.hasAttribute("closed") || card.suspension.you?.may_answer === false);
    const isDone = () =>
      within(document, ".skeleton, [data-pending]").length === 0 &&
      within(document, "toolgate-inbox").every((inbox) => inbox.store?.status.state === "live") &&
      within(document, "toolgate-approval, toolgate-elicitation").every(isShown);
    await document.fonts.ready;
    while (!isDone()) await new Promise(requestAnimationFrame);
    return true;
  });
  const hangs = pause(LONGEST, false, { ref: false });
  if (!(await Promise.race([isSettled, hangs]))) throw new Error(`${page.url()} still loads something`);
}
