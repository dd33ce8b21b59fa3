import "./dom.js";
import { describe, expect, it } from "vitest";
import { type ToolgateApproval, type ToolgateElicitation, ToolgateInbox } from "../src/elements.js";
import { root, text, type } from "./cards.js";
import { until } from "./fake-clock.js";
import { suspension } from "./fake-host.js";
import { host, toolgate } from "./page.js";

const SCHEMA = { type: "object", properties: { day: { type: "string", title: "Day" } } };

async function inbox(drafts?: ToolgateInbox["drafts"]) {
  const element = new ToolgateInbox();
  if (drafts !== undefined) element.drafts = drafts;
  element.toolgate = toolgate;
  document.body.append(element);
  await until(() => element.store?.status.state === "live");
  return element;
}
const approval = (element: ToolgateInbox) =>
  root(element).querySelector<ToolgateApproval>("toolgate-approval") as ToolgateApproval;
const comment = (element: ToolgateInbox) =>
  root(approval(element)).querySelector<HTMLInputElement>("input[maxlength='1000']") as HTMLInputElement;
const question = (element: ToolgateInbox) =>
  root(element).querySelector<ToolgateElicitation>("toolgate-elicitation") as ToolgateElicitation;
const day = (element: ToolgateInbox) =>
  root(question(element)).querySelector<HTMLInputElement>("input[id$=day]");

describe("unsent input", () => {
  it("comes back with the filter or the page", async () => {
    host.add(suspension());
    host.add(suspension({ kind: "elicitation", allowed: ["answer"], response_schema: SCHEMA }));
    const drafts: ToolgateInbox["drafts"] = new Map();
    const first = await inbox(drafts);
    await until(() => day(first) !== null);
    type(comment(first), "half a sentence");
    type(day(first), "Tues");

    first.setAttribute("kind", "client_exec");
    first.removeAttribute("kind");
    await until(() => root(first).querySelectorAll('[part~="item"]').length === 2);
    expect(comment(first).value).toBe("half a sentence");

    first.remove();
    // React unmounts a removed form after a moment.
    await Promise.resolve();
    expect(drafts.size).toBe(2);
    const second = await inbox(drafts);
    expect(comment(second).value).toBe("half a sentence");
    expect(day(second)?.value).toBe("Tues");
    // The card has just appeared, so it takes no answer yet.
    expect(approval(second).isReady).toBe(false);
    expect(drafts.size).toBe(0);
  });

  it("belongs to one principal, and is dropped when the card ends", async () => {
    const waiting = suspension();
    host.add(waiting);
    const drafts: ToolgateInbox["drafts"] = new Map();
    const first = await inbox(drafts);
    first.remove();
    expect(drafts.size).toBe(0);
    const second = await inbox(drafts);
    type(comment(second), "mine");
    second.remove();
    const other = await inbox();
    expect(comment(other).value).toBe("");
    other.remove();
    host.end(waiting.suspension, "deny", "bob");
    const third = await inbox(drafts);
    expect(text(third, "empty")).toBe("Nothing is waiting for you.");
  });
});

it("names the scope of select-all, and shows success in green", async () => {
  for (let count = 0; count < 52; count += 1) host.add(suspension());
  const element = await inbox();
  const all = () => root(element).querySelector("label[for=all]")?.textContent;
  expect(all()).toBe("Select all shown except high risk");
  root(element).querySelector<HTMLElement>('[part="more"]')?.click();
  expect(all()).toBe("Select all except high risk");
  root(element).querySelector<HTMLInputElement>("#all")?.click();
  await element.answerSelected("deny");
  expect(text(element, "notice")).toBe("52 denied.");
  expect(root(element).querySelector('[part="notice"]')?.className).toBe("good");
  host.cut();
  await until(() => text(element, "notice").startsWith("The host does not answer"));
  expect(root(element).querySelector('[part="notice"]')?.className).toBe("");
});
