// What every test begins with: a host of its own, people who are logged in, and pages that may not complain.
import {
  type Browser,
  type BrowserContextOptions,
  test as base,
  expect,
  type JSHandle,
  type Page,
} from "@playwright/test";
import type { Client } from "./client";
import { Host, type Setup } from "./host";

/** How a window is opened. */
export interface Window extends BrowserContextOptions {
  /** In another browser than the test's own. */
  in?: Browser;
  /** What its pages may complain about, because the test is about it. */
  expected?: RegExp;
}

interface Fixtures {
  /** Starts a host. It is killed, and its folder removed, when the test is over. */
  start: (setup: Setup) => Promise<Host>;
  /** A browser's window that nobody has logged in with. */
  visit: (window?: Window) => Promise<Page>;
  /** A window on the console, logged in with this token, at the inbox. */
  enter: (host: Host, who: Client, window?: Window) => Promise<Page>;
}

export const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads from the pattern what a fixture needs.
  start: async ({}, use, info) => {
    const hosts: Host[] = [];
    await use(async (setup) => {
      const host = new Host(setup);
      hosts.push(host);
      await host.start();
      return host;
    });
    for (const host of hosts) {
      if (info.status !== info.expectedStatus) await info.attach("host.log", { body: host.log });
      await host.dispose();
    }
  },

  visit: async ({ browser }, use) => {
    const complaints: string[] = [];
    await use(async ({ in: other = browser, expected, ...options } = {}) => {
      const context = await other.newContext(options);
      const page = await context.newPage();
      listen(page, (said) => expected?.test(said) || complaints.push(`${page.url()}: ${said}`));
      return page;
    });
    expect(complaints, "what the pages complained about").toEqual([]);
  },

  enter: async ({ visit }, use) => {
    await use(async (host, who, window) => {
      const page = await visit({ baseURL: host.url, ...window });
      await page.goto("/");
      await page.getByLabel("Token").fill(who.token);
      await page.getByRole("button", { name: "Log in" }).click();
      await expect(page.getByRole("heading", { name: "Inbox", level: 1 })).toBeVisible();
      return page;
    });
  },
});

export { expect };

/** Notes what no page may do, whatever a test is about: throw, break its policy, or ask a host that is no test's. */
function listen(page: Page, complain: (said: string) => void): void {
  page.on("pageerror", (error) => complain(error.message));
  page.on("dialog", (dialog) => {
    complain(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // Chromium reports each refused or broken request by itself, and what a host that was killed does not answer is one.
    const isRequest = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isRequest) complain(message.text());
  });
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol !== "data:" && hostname !== "127.0.0.1") complain(`it asked for ${request.url()}`);
  });
}

/** The cards of approvals that say this, or all of them. */
export function approvals(page: Page, text: string | RegExp = "") {
  return page.locator("toolgate-approval").filter({ hasText: text });
}

/** The cards of questions. */
export function questions(page: Page, text: string | RegExp = "") {
  return page.locator("toolgate-elicitation").filter({ hasText: text });
}

/** So long, in milliseconds, a card that is over is still shown to whoever does not point at it. */
export const LINGERS = 4000;

/** A card's button. */
export function button(card: ReturnType<typeof approvals>, name: string) {
  return card.getByRole("button", { name, exact: true });
}

/** Keeps what is over on the screen for as long as the test looks at it: nothing moves under a pointer. */
export async function stay(page: Page): Promise<void> {
  await page.locator("toolgate-inbox [part=list]").hover();
}

/**
 * What the cards of this inbox say from now on, each time that it changes. So a test sees what was shown for a moment only, and
 * what the host does after a while can happen soon.
 */
export async function said(page: Page): Promise<JSHandle<string[]>> {
  return page.locator("toolgate-inbox").evaluateHandle((inbox) => {
    const told: string[] = [];
    const root = inbox.shadowRoot as ShadowRoot;
    const observer = new MutationObserver(look);
    const watch = (node: Node) =>
      observer.observe(node, { childList: true, subtree: true, characterData: true });
    function look(): void {
      const cards = [...root.querySelectorAll("toolgate-approval")];
      for (const card of cards) watch(card.shadowRoot as ShadowRoot);
      const text = cards.map((card) => card.shadowRoot?.textContent).join("\n");
      if (text !== told.at(-1)) told.push(text);
    }
    watch(root);
    return told;
  });
}
