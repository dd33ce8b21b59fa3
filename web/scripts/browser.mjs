// Chromium as the console's scripts use it.

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
