// The fixtures of every test: a host, logged-in windows, and pages without errors.
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

/** The options of a window. */
export interface Window extends BrowserContextOptions {
  /** Another browser than the test's own. */
  in?: Browser;
  /** Errors that the test expects. */
  expected?: RegExp;
}

interface Fixtures {
  /** Starts a host, which is killed and removed after the test. */
  start: (setup: Setup) => Promise<Host>;
  /** A window without a log-in. */
  visit: (window?: Window) => Promise<Page>;
  /** A console window at the inbox, logged in with this token. */
  enter: (host: Host, who: Client, window?: Window) => Promise<Page>;
}

export const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixture's dependencies from the pattern.
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

/** Reports exceptions, policy violations and requests to other machines. */
function listen(page: Page, complain: (said: string) => void): void {
  page.on("pageerror", (error) => complain(error.message));
  page.on("dialog", (dialog) => {
    complain(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // Chromium reports each failed request, and requests to a killed host fail.
    const isRequest = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isRequest) complain(message.text());
  });
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol !== "data:" && hostname !== "127.0.0.1") complain(`it asked for ${request.url()}`);
  });
}

/** The approval cards with this text, or all. */
export function approvals(page: Page, text: string | RegExp = "") {
  return page.locator("toolgate-approval").filter({ hasText: text });
}

/** The question cards. */
export function questions(page: Page, text: string | RegExp = "") {
  return page.locator("toolgate-elicitation").filter({ hasText: text });
}

/** Milliseconds for which a closed card is still shown without a pointer on the list. */
export const LINGERS = 4000;

/** A button of a card. */
export function button(card: ReturnType<typeof approvals>, name: string) {
  return card.getByRole("button", { name, exact: true });
}

/** Keeps closed cards on the screen, because cards under the pointer do not move. */
export async function stay(page: Page): Promise<void> {
  await page.locator("toolgate-inbox [part=list]").hover();
}

/**
 * Records the text of the inbox's cards at every change, so that a test also sees text that was shown only for a moment.
 */
export async function said(page: Page): Promise<JSHandle<string[]>> {
  return page.locator("toolgate-inbox").evaluateHandle((inbox) => {
    const texts: string[] = [];
    const root = inbox.shadowRoot as ShadowRoot;
    const observer = new MutationObserver(look);
    const watch = (node: Node) =>
      observer.observe(node, { childList: true, subtree: true, characterData: true });
    function look(): void {
      const cards = [...root.querySelectorAll("toolgate-approval")];
      for (const card of cards) watch(card.shadowRoot as ShadowRoot);
      const text = cards.map((card) => card.shadowRoot?.textContent).join("\n");
      if (text !== texts.at(-1)) texts.push(text);
    }
    watch(root);
    return texts;
  });
}
