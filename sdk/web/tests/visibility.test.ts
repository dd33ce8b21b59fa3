import "./dom.js";
import { afterEach, describe, expect, it } from "vitest";
import { ToolgateApproval, ToolgateInbox } from "../src/elements.js";
import type { FeedEvent, StreamStatus } from "../src/index.js";
import { root, text } from "./cards.js";
import { until } from "./fake-clock.js";
import { problem, suspension } from "./fake-host.js";
import { clock, host, toolgate } from "./page.js";

const stop: (() => void)[] = [];
afterEach(() => {
  for (const end of stop.splice(0)) end();
  document.body.replaceChildren();
  look(true);
});

/** Shows or hides the page. */
function look(isHere: boolean): void {
  Object.defineProperty(document, "visibilityState", {
    value: isHere ? "visible" : "hidden",
    configurable: true,
  });
  document.dispatchEvent(new window.Event("visibilitychange"));
}

function card(): ToolgateApproval {
  const element = new ToolgateApproval();
  element.toolgate = toolgate;
  return element;
}

describe("a hidden page", () => {
  it("holds no stream for its inbox, and catches up when visible", async () => {
    const [a, b] = [suspension(), suspension()];
    host.add(a);
    const inbox = new ToolgateInbox();
    inbox.toolgate = toolgate;
    document.body.append(inbox);
    await until(() => inbox.store?.status.state === "live");
    look(false);
    await until(() => host.streams.size === 0);
    host.end(a.suspension, "approve", "bob");
    host.add(b);
    expect(host.at("GET", /events/)).toHaveLength(1);
    look(true);
    const [first] = root(inbox).querySelectorAll<ToolgateApproval>("toolgate-approval");
    await until(() => first?.hasAttribute("closed"));
    expect(text(first as ToolgateApproval, "status")).toBe("Approved by bob.");
    expect(text(inbox, "counts")).toBe("Waiting: 1 approval");
    expect(text(inbox, "notice")).toBe("");
  });

  it("holds none for a single card, which is current when visible", async () => {
    const waiting = suspension();
    host.add(waiting);
    const element = card();
    element.suspension = waiting;
    document.body.append(element);
    await until(() => host.streams.size === 1);
    look(false);
    await until(() => host.streams.size === 0);
    host.end(waiting.suspension, "deny", "eve");
    look(true);
    await until(() => element.hasAttribute("closed"));
    expect(text(element, "status")).toBe("Denied by eve.");
  });

  it("opens none at the start", async () => {
    look(false);
    const store = toolgate.pendingStore();
    const states: string[] = [];
    stop.push(
      store.subscribe((change) => {
        if (change.type === "status") states.push(change.status.state);
      }),
    );
    expect(host.seen).toEqual([]);
    look(true);
    await until(() => store.status.state === "live");
    expect(states).toEqual(["loading", "loading", "live"]);
  });

  it("resumes a conversation without gap, duplicate or pause", async () => {
    const leaving = new AbortController();
    stop.push(() => leaving.abort());
    const received: FeedEvent[] = [];
    const states: StreamStatus["state"][] = [];
    const onStatus = ({ state }: StreamStatus) => states.push(state);
    const done = (async () => {
      for await (const event of toolgate.events("c", { signal: leaving.signal, onStatus }))
        received.push(event);
    })();
    host.commit("turn.started", { n: 1 });
    await until(() => received.length === 1);
    look(false);
    await until(() => host.streams.size === 0);
    host.commit("turn.settled", { n: 2 });
    look(true);
    await until(() => received.length === 2);
    expect(received.map(({ n }) => n)).toEqual([1, 2]);
    expect(states).toEqual(["connecting", "open", "hidden", "connecting", "open"]);
    look(false);
    await until(() => states.at(-1) === "hidden");
    leaving.abort();
    await done;
  });

  it("does not poll if it cannot follow", async () => {
    const waiting = suspension();
    host.add(waiting);
    host.instead = ({ path }) => (path.endsWith("/events") ? problem(403, "not-allowed", "one") : undefined);
    const element = card();
    element.suspension = waiting;
    document.body.append(element);
    await until(() => clock.waits.includes(3000));
    look(false);
    const before = host.seen.length;
    clock.advance(3000);
    await until(() => clock.waits.includes(3000));
    expect(host.seen).toHaveLength(before);
    look(true);
    clock.advance(3000);
    await until(() => host.seen.length > before);
  });

  it("stays a client, and keeps counting on request", async () => {
    const attached = toolgate.clientTools({ conversation: "c", tools: {} });
    const store = toolgate.pendingStore({ whileHidden: true });
    stop.push(
      () => attached.stop(),
      store.subscribe(() => {}),
    );
    await until(() => host.streams.size === 2 && store.status.state === "live");
    look(false);
    host.add(suspension());
    await until(() => store.all.length === 1);
    expect(host.streams.size).toBe(2);
  });
});

describe("a closed card", () => {
  it("follows nothing, even after a move", async () => {
    const waiting = suspension();
    host.add(waiting);
    const element = card();
    element.suspension = waiting;
    document.body.append(element);
    await until(() => host.streams.size === 1);
    host.end(waiting.suspension, "approve", "bob");
    await until(() => element.hasAttribute("closed"));
    await until(() => host.streams.size === 0);
    document.body.append(element);
    expect(host.at("GET", /events/)).toHaveLength(1);
  });

  it("learns of its end from a store that was already live", async () => {
    const waiting = suspension();
    const store = toolgate.pendingStore();
    const received: string[] = [];
    stop.push(store.subscribe(({ type }) => received.push(type)));
    await until(() => store.status.state === "live");
    host.add(waiting);
    host.end(waiting.suspension, "deny", "eve");
    await until(() => received.includes("closed"));
    const element = card();
    element.store = store;
    // The card gets an older state.
    element.suspension = waiting;
    document.body.append(element);
    await until(() => element.hasAttribute("closed"));
    expect(text(element, "status")).toBe("Denied by eve.");
    expect(host.at("GET", /events/)).toHaveLength(1);
  });
});
