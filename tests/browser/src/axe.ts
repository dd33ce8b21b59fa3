// Runs axe-core on a page.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, type Page } from "@playwright/test";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { target: unknown[]; html: string; failureSummary?: string }[];
}

/** Fails on a serious finding, or if the page is wider than its window. */
export async function examine(page: Page, name: string): Promise<void> {
  // The browser's debugger runs this, because the page's policy refuses injected scripts.
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run: (of: object) => Promise<{ violations: Violation[]; passes: unknown[] }> };
    };
    // React Aria announces a button with an element that refers to it by `aria-labelledby`, and removes that element after
    // seconds. If the button was removed already (“Logging in …”), the reference is broken, and axe-core reports it. Only such
    // elements are excluded.
    const stale = [...document.querySelectorAll("[data-live-announcer] [aria-labelledby]")].filter((said) => {
      const names = said.getAttribute("aria-labelledby")?.split(" ") ?? [];
      return names.every((id) => document.getElementById(id) === null);
    });
    const { violations, passes } = await axe.run({ include: document, exclude: stale });
    return { violations, passed: passes.length };
  });
  // A page on which no rule applies would also pass.
  expect(found.passed, `${name}: what axe-core could check`).toBeGreaterThan(5);
  const serious = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const listed = serious.flatMap(({ id, nodes }) =>
    nodes.map(({ target, html, failureSummary }) => `${id}: ${target}: ${html}: ${failureSummary}`),
  );
  expect(listed, `${name}: what axe-core finds serious`).toEqual([]);
  const surplus = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });
  expect(surplus, `${name}: pixels by which the page is wider than the window`).toBeLessThanOrEqual(0);
}
