import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type PendingChange, PendingStore, Toolgate } from "../src/index.js";
import type { PendingFilter } from "../src/wire.js";
import { FakeClock, until } from "./fake-clock.js";
import { FakeHost, problem, suspension } from "./fake-host.js";

let host: FakeHost;
let clock: FakeClock;
const leave: (() => void)[] = [];
beforeEach(async () => {
  host = await FakeHost.start();
  clock = new FakeClock();
});
afterEach(async () => {
  for (const end of leave.splice(0)) end();
  await host.stop();
});

async function started(filter?: PendingFilter) {
  const toolgate = new Toolgate({ url: host.url, token: "t", clock });
  const store = new PendingStore(toolgate, filter && { filter });
  const changes: PendingChange[] = [];
  leave.push(store.subscribe((change) => changes.push(change)));
  await until(() => store.status.state === "live");
  const ids = () => store.all.map(({ suspension }) => suspension);
  const closed = () => changes.flatMap((change) => (change.type === "closed" ? [change] : []));
  return { store, changes, ids, closed };
}

const lists = () => host.at("GET", /^\/v1\/pending$/).length;

describe("the pending store", () => {
  it("subscribes, then lists, then stays up to date", async () => {
    const [a, b] = [suspension(), suspension()];
    host.add(a);
    const { store, ids, closed } = await started();
    expect(host.seen.map(({ path }) => path)).toEqual(["/v1/pending/events", "/v1/pending"]);
    expect(ids()).toEqual([a.suspension]);
    host.add(b);
    await until(() => ids().length === 2);
    host.change({ ...a, reason: "new" });
    await until(() => store.get(a.suspension)?.reason === "new");
    expect(ids()).toEqual([a.suspension, b.suspension]);
    host.end(a.suspension, "approve", "bob");
    await until(() => ids().length === 1);
    expect(closed()).toMatchObject([{ id: a.suspension, closed: { state: "approve", by: "bob" } }]);
  });

  it("collects the unreadable suspensions of every page", async () => {
    const lost = (suspension: string) => ({ suspension, turn: null });
    host.instead = ({ path, query }) =>
      path !== "/v1/pending"
        ? undefined
        : query.get("after") === "a"
          ? { status: 200, body: { suspensions: [], next: null, unreadable: [lost("b"), lost("c")] } }
          : { status: 200, body: { suspensions: [], next: "a", unreadable: [lost("a")] } };
    const { store } = await started();
    expect(store.unreadable.map(({ suspension }) => suspension)).toEqual(["a", "b", "c"]);
    host.instead = undefined;
    host.tell("/v1/pending/events", "pending.reset", {});
    await until(() => lists() === 3 && store.unreadable.length === 0);
    expect(store.unreadable).toEqual([]);
  });

  it("prefers the stream over an older list", async () => {
    const [a, b] = [suspension(), suspension()];
    host.add(a);
    let release: (() => void) | undefined;
    const stale = { suspensions: [a], next: null };
    const toolgate = new Toolgate({
      url: host.url,
      token: "t",
      clock,
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (!(input as Request).url.endsWith("/v1/pending")) return response;
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        return Response.json(stale);
      },
    });
    const store = new PendingStore(toolgate);
    const received: string[] = [];
    leave.push(store.subscribe(({ type }) => received.push(type)));
    const answered = await until(() => release);
    host.add(b);
    host.end(a.suspension, "deny", "bob");
    await until(() => received.includes("opened") && store.get(b.suspension));
    // The end of what is not known yet changes nothing that could be waited for: what follows it on the stream does.
    host.change({ ...b, reason: "later" });
    await until(() => store.get(b.suspension)?.reason === "later");
    answered();
    await until(() => store.status.state === "live");
    expect(store.all.map(({ suspension }) => suspension)).toEqual([b.suspension]);
  });

  it("lists again after a break, and reports how others ended", async () => {
    const [a, b, c] = [suspension(), suspension(), suspension()];
    for (const one of [a, b]) host.add(one);
    const { store, ids, closed } = await started();
    host.cut();
    await until(() => store.status.state === "away");
    host.end(a.suspension, "approve", "carol");
    host.add(c);
    await until(() => clock.waits.includes(375));
    clock.advance(375);
    await until(() => closed().length === 1);
    expect(ids()).toEqual([b.suspension, c.suspension]);
    expect(closed()[0]).toMatchObject({ id: a.suspension, closed: { state: "approve", by: "carol" } });
  });

  it("reports an end after a restart during the request", async () => {
    const a = suspension();
    host.add(a);
    const { store, closed } = await started();
    host.cut();
    host.end(a.suspension, "approve", "carol");
    let asked = 0;
    let release = () => {};
    const ask = host.instead;
    host.instead = (seen) => {
      if (!seen.path.startsWith("/v1/suspensions/")) return ask?.(seen);
      asked += 1;
      if (asked === 1) release();
      return undefined;
    };
    const isAsked = new Promise<void>((resolve) => {
      release = resolve;
    });
    await until(() => clock.waits.includes(375));
    clock.advance(375);
    await isAsked;
    store.restart();
    await until(() => closed().length === 1);
    expect(closed()[0]).toMatchObject({ id: a.suspension, closed: { state: "approve", by: "carol" } });
    expect(asked).toBe(2);
  });

  it("lists again after a reset event", async () => {
    const a = suspension();
    const { ids } = await started();
    host.open.set(a.suspension, a);
    host.tell("/v1/pending/events", "pending.reset", {});
    await until(() => ids().length === 1);
    expect(lists()).toBe(2);
  });

  it("applies its filter to the events of the stream", async () => {
    const { ids, closed } = await started({ conversation: "mine", mine: true });
    host.add(suspension({ conversation: "other" }));
    const a = suspension({ conversation: "mine" });
    host.add(a);
    await until(() => ids().length > 0);
    expect(ids()).toEqual([a.suspension]);
    const nested = suspension({ conversation: "~mine" });
    host.add(nested);
    await until(() => ids().length > 1);
    host.end(nested.suspension, "deny", "ann");
    await until(() => ids().length < 2);
    host.change({ ...a, you: { may_answer: false, voted: true, counts_again: false } });
    await until(() => ids().length === 0);
    expect(closed()).toMatchObject([{ id: nested.suspension }, { id: a.suspension, closed: undefined }]);
  });

  it("reports a failure, and restarts on request", async () => {
    host.instead = () => problem(401, "unauthorized", "who are you?");
    const toolgate = new Toolgate({ url: host.url, token: "t", clock });
    const store = new PendingStore(toolgate);
    leave.push(store.subscribe(() => {}));
    await until(() => store.status.state === "failed");
    expect(store.status).toMatchObject({ error: { code: "unauthorized" } });
    host.instead = undefined;
    store.restart();
    await until(() => store.status.state === "live");
  });

  it("follows the host while it has listeners", async () => {
    const { store } = await started();
    const other = store.subscribe(() => {});
    expect(host.at("GET", /events/)).toHaveLength(1);
    other();
    expect(host.streams.size).toBe(1);
    leave.pop()?.();
    await until(() => host.streams.size === 0);
    expect(store.status.state).toBe("idle");
  });
});
