// Runs Chromium for the console's scripts.

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

/** A browser. The variable CHROMIUM can name another binary. */
export function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: ARGUMENTS });
}

/** A new page, logged in with the token. Errors of the page fail the script. */
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
    // Chromium reports each 401 as an error. Before the login, a 401 is expected.
    if (message.type() === "error" && !message.text().includes("401"))
      page.complaints.push(`${page.url()}: ${message.text()}`);
  });
  await page.goto("/login");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Inbox", level: 1 }).waitFor();
  return page;
}

/** Milliseconds after which a page that is still loading counts as hung. */
const LONGEST = 30_000;

/**
 * Waits until a page has loaded: no placeholder, no loading list or form, and no card that takes no answer yet. `shows` must be
 * visible as well. The wait looks at the page, because streams keep the network busy forever.
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
