import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ClientTool, type ClientTools, Toolgate } from "../src/index.js";
import type { Suspension } from "../src/wire.js";
import { FakeClock, until } from "./fake-clock.js";
import { FakeHost, problem, suspension } from "./fake-host.js";

let host: FakeHost;
let clock: FakeClock;
let attached: ClientTools | undefined;
const errors: unknown[] = [];
beforeEach(async () => {
  host = await FakeHost.start();
  clock = new FakeClock();
  errors.length = 0;
});
afterEach(async () => {
  attached?.stop();
  await host.stop();
});

async function attach(tools: Record<string, ClientTool>) {
  const toolgate = new Toolgate({ url: host.url, token: "t", clock });
  attached = toolgate.clientTools({ conversation: "c", tools, onError: (error) => errors.push(error) });
  await until(() => host.streams.size === 1);
}

function call(tool: string, args: unknown = {}, more: Partial<Suspension> = {}) {
  const waiting = suspension({
    ...more,
    kind: "client_exec",
    tool,
    arguments: args as never,
    allowed: ["result", "error"],
  });
  host.open.set(waiting.suspension, waiting);
  host.commit("call.suspended", waiting);
  return waiting;
}

const answers = () =>
  host.at("POST", /resolve/).map(({ body }) => JSON.parse(body) as Record<string, unknown>);

describe("tools of this page", () => {
  it("are announced, run and answered with the call's digest", async () => {
    await attach({ locate: (args) => ({ at: args.place }), pick: () => undefined });
    expect([...host.streams][0]?.query.get("client")).toBe("locate,pick");
    call("locate", { place: "here" });
    await until(() => answers().length === 1);
    call("pick");
    await until(() => answers().length === 2);
    expect(answers()).toEqual([
      { decision: "result", data: { at: "here" }, expect_digest: "sha256:aa" },
      { decision: "result", data: null, expect_digest: "sha256:aa" },
    ]);
  });

  it("run once for each suspension, however often it is reported", async () => {
    let runs = 0;
    let finish = () => {};
    await attach({
      slow: () => {
        runs += 1;
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
    });
    const waiting = call("slow");
    host.commit("call.suspended", waiting);
    await until(() => runs === 1);
    host.cut();
    await until(() => clock.waits.includes(375));
    clock.advance(375);
    // After a break the host reports the open suspensions again.
    await until(() => host.streams.size === 1);
    const other = call("slow");
    await until(() => runs === 2);
    host.end(other.suspension, "expired", "system");
    host.commit("suspension.expired", other);
    finish();
    await until(() => true);
    expect(runs).toBe(2);
  });

  it("ignore suspensions of other clients and other kinds", async () => {
    const ran: string[] = [];
    await attach({ ours: () => ran.push("ours") });
    call("theirs");
    call("toString");
    host.commit("call.suspended", suspension({ tool: "ours", kind: "approval" }));
    call("ours");
    await until(() => answers().length === 1);
    expect(ran).toEqual(["ours"]);
  });

  it("fail with their own message", async () => {
    await attach({
      refuse: () => {
        throw new Error("the user said no");
      },
    });
    call("refuse");
    await until(() => answers().length === 1);
    expect(answers()).toMatchObject([{ decision: "error", comment: "the user said no" }]);
  });

  it("fail if the host rejects their result", async () => {
    host.instead = ({ method, body }) =>
      method === "POST" && body.includes('"result"')
        ? problem(422, "invalid", "/data: no number")
        : undefined;
    await attach({ odd: () => "x" });
    call("odd");
    await until(() => answers().length === 2);
    expect(answers()[1]).toMatchObject({
      decision: "error",
      comment: "the page's result was refused: /data: no number",
    });
    await until(() => errors.length === 1);
  });

  it("repeat the answer until the host responds", async () => {
    let failures = 2;
    host.instead = ({ method }) => {
      if (method !== "POST" || failures === 0) return undefined;
      failures -= 1;
      return problem(500, "fault", "down");
    };
    let runs = 0;
    await attach({
      once: () => {
        runs += 1;
      },
    });
    call("once");
    await until(() => clock.waits.includes(375));
    clock.advance(375);
    await until(() => clock.waits.includes(750));
    clock.advance(750);
    await until(() => host.ended.size === 1);
    expect([runs, answers().length]).toEqual([1, 3]);
  });

  it("report progress in order, the newest first after a delay", async () => {
    const reports = () => host.at("POST", /progress/).map(({ body }) => JSON.parse(body) as unknown);
    let finish = () => {};
    await attach({
      copy: (_args, { progress }) => {
        progress("begins");
        for (const page of [1, 2, 3]) progress(`page ${page}`, page / 4, { page });
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
      still: (_args, { progress }) => progress("nobody expects this"),
    });
    call("copy", {}, { streaming: true });
    await until(() => reports().length === 2);
    expect(reports()).toEqual([
      { message: "begins" },
      { message: "page 3", fraction: 0.75, data: { page: 3 } },
    ]);
    finish();
    await until(() => answers().length === 1);
    call("still");
    await until(() => answers().length === 2);
    expect([reports().length, errors]).toEqual([2, []]);
  });

  it("answer even if their reports are refused", async () => {
    const codes = [
      problem(422, "invalid", "/fraction: no"),
      problem(409, "stale", "late"),
      problem(500, "fault", "down"),
    ];
    host.instead = ({ path }) => (path.endsWith("/progress") ? codes.shift() : undefined);
    await attach({
      copy: async (args, { progress }) => {
        progress("half", args.fraction);
        const sent = host.at("POST", /progress/).length;
        await until(() => host.at("POST", /progress/).length > sent);
      },
    });
    for (const count of [1, 2, 3]) {
      call("copy", { fraction: 2 }, { streaming: true });
      await until(() => answers().length === count);
    }
    expect(answers().map(({ decision }) => decision)).toEqual(["result", "result", "result"]);
    expect(errors).toMatchObject([{ code: "invalid" }]);
  });

  it("are aborted when the call ends, and do not answer", async () => {
    const signals: AbortSignal[] = [];
    await attach({
      wait: (_args, { signal }) => {
        signals.push(signal);
        return new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    const [a, b, c] = [call("wait"), call("wait"), call("wait")];
    await until(() => signals.length === 3);
    host.commit("call.resolved", { suspension: a.suspension });
    host.commit("call.settled", { turn: b.turn, call: b.call });
    await until(() => signals[0]?.aborted && signals[1]?.aborted);
    expect(signals[2]?.aborted).toBe(false);
    attached?.stop();
    await attached?.done;
    expect(signals[2]?.aborted).toBe(true);
    expect([answers(), c.kind]).toEqual([[], "client_exec"]);
  });

  it("are aborted after a break only if their call has ended", async () => {
    const signals: AbortSignal[] = [];
    await attach({
      pick: (_args, { signal }) => {
        signals.push(signal);
        return new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    const [over, gone, waiting] = [call("pick"), call("pick"), call("pick")];
    await until(() => signals.length === 3);
    host.cut();
    host.end(over.suspension, "expired", "system");
    host.open.delete(gone.suspension);
    let failures = 1;
    host.instead = ({ path }) => {
      if (!path.endsWith(over.suspension) || failures === 0) return undefined;
      failures -= 1;
      return problem(500, "fault", "down");
    };
    await until(() => clock.waits.includes(375));
    clock.advance(375);
    await until(() => signals[1]?.aborted && clock.waits.includes(1000));
    clock.advance(1000);
    await until(() => signals[0]?.aborted);
    await until(() => host.at("GET", /suspensions/).some(({ path }) => path.endsWith(waiting.suspension)));
    expect(signals[2]?.aborted).toBe(false);
    expect(answers()).toEqual([]);
  });

  it("report that the page may not attach", async () => {
    host.instead = () => problem(403, "not-allowed", "no client");
    const toolgate = new Toolgate({ url: host.url, token: "t", clock });
    attached = toolgate.clientTools({ conversation: "c", tools: {}, onError: (error) => errors.push(error) });
    await expect(attached.done).rejects.toMatchObject({ code: "not-allowed" });
    expect(errors).toMatchObject([{ code: "not-allowed" }]);
  });
});
