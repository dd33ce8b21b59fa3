import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FeedEvent, type StreamStatus, Toolgate } from "../src/index.js";
import { FakeClock, until } from "./fake-clock.js";
import { FakeHost, problem } from "./fake-host.js";

let host: FakeHost;
let clock: FakeClock;
let stop: AbortController;
beforeEach(async () => {
  host = await FakeHost.start();
  clock = new FakeClock();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await host.stop();
});

function follow(onStatus?: (status: StreamStatus) => void) {
  const toolgate = new Toolgate({ url: host.url, token: "t", clock });
  const received: FeedEvent[] = [];
  const done = (async () => {
    for await (const event of toolgate.events("c", { signal: stop.signal, ...(onStatus && { onStatus }) })) {
      received.push(event);
    }
  })();
  return { received, done };
}

describe("a stream of events", () => {
  it("resumes after the last event without gap or duplicate", async () => {
    const { received, done } = follow();
    host.commit("turn.started", { n: 1 });
    host.commit("call.requested", { n: 2 });
    await until(() => received.length === 2);
    host.cut();
    host.commit("call.settled", { n: 3 });
    // The pause of a first failure: half of 500 ms, and half of the other half by chance.
    await until(() => clock.waits.includes(375));
    clock.advance(375);
    await until(() => received.length === 3);
    host.commit("turn.settled", { n: 4 });
    await until(() => received.length === 4);
    expect(received.map(({ n }) => n)).toEqual([1, 2, 3, 4]);
    expect(host.at("GET", /events/).map(({ headers }) => headers["last-event-id"])).toEqual([
      undefined,
      "2-1",
    ]);
    stop.abort();
    await done;
  });

  it("waits longer after each failure, or as long as the host says", async () => {
    host.instead = () => problem(500, "fault", "down");
    const waits: number[] = [];
    follow((status) => {
      if (status.state === "waiting") waits.push(status.retryIn);
    });
    for (let failures = 1; failures <= 8; failures += 1) {
      await until(() => waits.length === failures);
      clock.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([375, 750, 1500, 3000, 6000, 12000, 22500, 22500]);
    host.instead = () => problem(429, "busy", "too much", { retry_after: 60 });
    await until(() => waits.length === 9);
    clock.advance(waits.at(-1) ?? 0);
    await until(() => waits.length === 10);
    expect(waits.at(-1)).toBe(60_000);
  });

  it("ends after a permanent error", async () => {
    host.instead = () => problem(404, "not-found", "somebody else's");
    await expect(follow().done).rejects.toMatchObject({ code: "not-found" });
    expect(host.seen).toHaveLength(1);
  });

  it("closes a connection without even a heartbeat", async () => {
    const states: string[] = [];
    follow(({ state }) => states.push(state));
    await until(() => host.streams.size === 1 && states.includes("open"));
    await until(() => clock.waits.includes(60_000));
    clock.advance(60_000);
    await until(() => states.includes("waiting"));
    clock.advance(30_000);
    await until(() => host.at("GET", /events/).length === 2);
  });

  it("ends when it is aborted, and leaves nothing behind", async () => {
    const { done } = follow();
    await until(() => host.streams.size === 1);
    stop.abort();
    await done;
    await until(() => host.streams.size === 0);
    expect(clock.waits).toEqual([]);
  });
});
