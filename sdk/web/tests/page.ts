/** A page with a host: every test of an element begins and ends with it. */

import "./dom.js";
import { afterEach, beforeEach } from "vitest";
import type { ToolgateElicitation } from "../src/elements.js";
import { ToolgateApproval, ToolgateInbox } from "../src/elements.js";
import { Toolgate } from "../src/index.js";
import type { Suspension } from "../src/wire.js";
import { root, text } from "./cards.js";
import { FakeClock, until } from "./fake-clock.js";
import { FakeHost, suspension } from "./fake-host.js";

export let host: FakeHost;
export let clock: FakeClock;
export let toolgate: Toolgate;
beforeEach(async () => {
  host = await FakeHost.start();
  clock = new FakeClock();
  toolgate = new Toolgate({ url: host.url, token: "t", clock });
});
afterEach(async () => {
  document.body.replaceChildren();
  await host.stop();
});

/** A card that has just appeared and follows the host. */
export async function appeared<C extends ToolgateApproval | ToolgateElicitation>(
  card: C,
  given: Partial<Suspension> = {},
): Promise<C> {
  const waiting = suspension(given);
  host.add(waiting);
  card.toolgate = toolgate;
  card.suspension = waiting;
  const before = host.streams.size;
  document.body.append(card);
  await until(() => host.streams.size > before);
  return card;
}

/** A card that takes answers. */
export async function shown<C extends ToolgateApproval | ToolgateElicitation>(
  card: C,
  given: Partial<Suspension> = {},
): Promise<C> {
  await appeared(card, given);
  clock.advance(500);
  return card;
}

export const approval = (given: Partial<Suspension> = {}) => shown(new ToolgateApproval(), given);

/** An inbox whose cards take answers. */
export async function inbox(...waiting: Suspension[]): Promise<ToolgateInbox> {
  for (const one of waiting) host.add(one);
  const element = new ToolgateInbox();
  element.toolgate = toolgate;
  document.body.append(element);
  await until(() => text(element, "counts") !== "" && element.store?.status.state === "live");
  clock.advance(500);
  return element;
}

export const cards = (element: HTMLElement) => [
  ...root(element).querySelectorAll<ToolgateApproval>("toolgate-approval"),
];
export const article = (card: HTMLElement) => root(card).querySelector("article");
export const bodies = () => host.at("POST", /resolve/).map(({ body }) => body);
