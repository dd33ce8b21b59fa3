import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RawJson, Toolgate, ToolgateError } from "../src/index.js";
import { FakeHost, problem, suspension } from "./fake-host.js";

let host: FakeHost;
beforeEach(async () => {
  host = await FakeHost.start();
});
afterEach(() => host.stop());

describe("requests", () => {
  it("carry the bearer token and never a cookie or a CSRF token", async () => {
    const toolgate = new Toolgate({ url: `${host.url}/`, token: async () => "tg_x" });
    await toolgate.pending({ conversation: "a b", mine: true });
    const [seen] = host.at("GET", /pending/);
    expect(seen?.headers.authorization).toBe("Bearer tg_x");
    expect(seen?.headers["x-toolgate-csrf"]).toBeUndefined();
    expect(`${seen?.path}?${seen?.query}`).toBe("/v1/pending?conversation=a+b&mine=true");
  });

  it("name the error in an address", () => {
    expect(() => new Toolgate({ url: "javascript:alert(1)" })).toThrow(/http/);
  });

  it("encode the parts of a path", async () => {
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    await expect(toolgate.suspension("../x?y")).rejects.toMatchObject({ code: "not-found" });
    expect(host.seen[0]?.path).toBe("/v1/suspensions/..%2Fx%3Fy");
  });

  it("send edited arguments as they were written", async () => {
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    const waiting = suspension();
    host.add(waiting);
    const text = '{"amount":12345678901234567890}';
    await toolgate.resolve(waiting.suspension, { decision: "approve", arguments: new RawJson(text) });
    expect(host.at("POST", /resolve/)[0]?.body).toBe(`{"decision":"approve","arguments":${text}}`);
  });

  it("read every page of a list", async () => {
    const page = (id: string, next: string | null) => ({
      status: 200,
      body: { standing_approvals: [{ id }], next },
    });
    host.instead = ({ query }) => (query.get("after") === "a" ? page("b", null) : page("a", "a"));
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    expect((await toolgate.standingApprovals()).map(({ id }) => id)).toEqual(["a", "b"]);
  });

  it("read the log of a call, and a turn with its logs", async () => {
    const log = { turn: "t", call: "a/b", status: "settled", runs: [{ run: 1, left_out: 2, lines: [] }] };
    host.instead = () => ({ status: 200, body: log });
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    expect(await toolgate.callLog("c d", "a/b")).toEqual(log);
    await toolgate.turn("c", "t", { log: true });
    expect(host.seen.map(({ path, query }) => `${path}?${query}`)).toEqual([
      "/v1/conversations/c%20d/calls/a%2Fb/log?",
      "/v1/conversations/c/turns/t?log=true",
    ]);
  });

  it("list turns, and answer a call by its id", async () => {
    host.instead = () => ({ status: 200, body: {} });
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    await toolgate.turns("c d", { state: "aborted", after: 7, limit: 2 });
    await toolgate.pending({ conversation: "c", call: "a", state: "closed", decision: "deny", by: "bob" });
    await toolgate.resolveCall("c d", "a/b", { decision: "approve", number: 2 });
    expect(host.seen.map(({ path, query }) => `${path}?${query}`)).toEqual([
      "/v1/conversations/c%20d/turns?state=aborted&after=7&limit=2",
      "/v1/pending?conversation=c&call=a&state=closed&decision=deny&by=bob",
      "/v1/conversations/c%20d/calls/a%2Fb/resolve?",
    ]);
    expect(host.seen[2]?.body).toBe('{"decision":"approve","number":2}');
  });

  it("do not follow redirects with a token", async () => {
    host.instead = () => ({ status: 302 });
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    await expect(toolgate.pending()).rejects.toMatchObject({ code: "unreachable" });
  });
});

describe("problems", () => {
  it("are errors with the host's code, detail and pointers", async () => {
    const errors = [{ pointer: "/data/age", message: "too young" }];
    host.instead = () => problem(422, "invalid", "it does not fit", { errors });
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    const error = await toolgate.resolve("s", { decision: "answer" }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ToolgateError);
    expect(error).toMatchObject({
      code: "invalid",
      status: 422,
      detail: "it does not fit",
      errors,
      isTransient: false,
    });
  });

  it("tell an unreachable host from a server that is not toolgate", async () => {
    const away = new Toolgate({ url: "http://127.0.0.1:1", token: "t" });
    const detail = "the host does not answer; it may be down";
    await expect(away.pending()).rejects.toMatchObject({ code: "unreachable", detail, isTransient: true });
    vi.stubGlobal("location", new URL("http://127.0.0.1:1/page"));
    await expect(away.pending()).rejects.toMatchObject({ detail });
    vi.stubGlobal("location", new URL("http://127.0.0.1:2/page"));
    await expect(away.pending()).rejects.toMatchObject({
      detail: `${detail}, or it does not allow this page (CORS)`,
    });
    vi.unstubAllGlobals();
    host.instead = () => ({ status: 404, body: "<html>" });
    const other = new Toolgate({ url: host.url, token: "t" });
    await expect(other.pending()).rejects.toMatchObject({ code: "not-toolgate", status: 404 });
  });

  it("pass an abort on unchanged", async () => {
    const toolgate = new Toolgate({ url: host.url, token: "t" });
    await expect(toolgate.pending({}, AbortSignal.abort())).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("a session", () => {
  const session = (csrf: string) => ({
    status: 200,
    body: { principal: "alice", roles: [], groups: [], csrf },
  });

  it("sends its CSRF token with every request, and no bearer token", async () => {
    host.instead = ({ path }) => (path === "/v1/session" ? session("w1") : undefined);
    const toolgate = new Toolgate({ url: host.url });
    await toolgate.signIn("tg_x");
    host.add(suspension({ suspension: "s1" }));
    await toolgate.pending();
    await toolgate.resolve("s1", { decision: "approve" });
    expect(host.at("POST", /session/)[0]?.body).toBe('{"token":"tg_x"}');
    // A browser can hold a log-in and a link's session. The CSRF token selects the one that reads.
    expect(host.at("GET", /pending/)[0]?.headers["x-toolgate-csrf"]).toBe("w1");
    expect(host.at("POST", /resolve/)[0]?.headers["x-toolgate-csrf"]).toBe("w1");
    expect(host.seen.every(({ headers }) => headers.authorization === undefined)).toBe(true);
  });

  it("asks for its CSRF token after a reload", async () => {
    host.instead = ({ path }) => (path === "/v1/session" ? session("w2") : undefined);
    const toolgate = new Toolgate({ url: host.url });
    host.add(suspension({ suspension: "s2" }));
    await toolgate.resolve("s2", { decision: "deny" });
    expect(host.at("POST", /resolve/)[0]?.headers["x-toolgate-csrf"]).toBe("w2");
  });

  it("repeats a request once if another tab has renewed it", async () => {
    let word = "old";
    host.instead = ({ path, headers }) => {
      if (path === "/v1/session") return session(word);
      return headers["x-toolgate-csrf"] === "new"
        ? undefined
        : problem(403, "not-allowed", "the word is wrong");
    };
    const toolgate = new Toolgate({ url: host.url });
    await toolgate.session();
    word = "new";
    host.add(suspension({ suspension: "s3" }));
    expect(await toolgate.resolve("s3", { decision: "approve" })).toMatchObject({ ok: true });
    expect(host.at("POST", /resolve/).map(({ body }) => body)).toEqual(
      Array(2).fill('{"decision":"approve"}'),
    );
    // Another principal has logged in. A request of one principal is never sent as another.
    host.add(suspension({ suspension: "s4" }));
    host.instead = ({ path }) =>
      path === "/v1/session"
        ? { status: 200, body: { principal: "bob", roles: [], groups: [], csrf: "bobs" } }
        : problem(403, "not-allowed", "the word is wrong");
    await expect(toolgate.resolve("s4", { decision: "approve" })).rejects.toMatchObject({
      code: "not-allowed",
    });
    expect(host.at("POST", /resolve/)).toHaveLength(3);
    host.instead = () => problem(403, "not-allowed", "never");
    await expect(toolgate.resolve("s3", { decision: "approve" })).rejects.toMatchObject({
      code: "not-allowed",
    });
    expect(host.at("POST", /resolve/)).toHaveLength(4);
  });

  it("repeats a read once after a renewal, as the same principal", async () => {
    let word = "old";
    let who = "alice";
    host.instead = ({ path, headers }) => {
      const sent = headers["x-toolgate-csrf"];
      if (sent !== undefined && sent !== word) return problem(401, "unauthorized", "that session has ended");
      if (path !== "/v1/session") return undefined;
      return { status: 200, body: { ...session(word).body, principal: who } };
    };
    const toolgate = new Toolgate({ url: host.url });
    await toolgate.session();
    word = "new";
    expect((await toolgate.pending()).suspensions).toEqual([]);
    expect(host.at("GET", /pending/).map(({ headers }) => headers["x-toolgate-csrf"])).toEqual([
      "old",
      "new",
    ]);
    // Bob has logged in, or the link's session has ended and Bob's log-in continues.
    [word, who] = ["bobs", "bob"];
    await expect(toolgate.pending()).rejects.toMatchObject({ status: 401 });
    await expect(toolgate.pending()).rejects.toMatchObject({ status: 401 });
    expect(
      host
        .at("GET", /pending/)
        .slice(2)
        .map(({ headers }) => headers["x-toolgate-csrf"]),
    ).toEqual(["new", "new"]);
  });

  it("finds the new CSRF token of a link's session beside a log-in", async () => {
    const link = { principal: "oncall", only: "s6", csrf: "links", expires_at: "" };
    host.instead = ({ path, headers }) => {
      const sent = headers["x-toolgate-csrf"];
      if (sent !== undefined && sent !== "links")
        return problem(401, "unauthorized", "that session has ended");
      return path === "/v1/session" ? { status: 200, body: { ...session("w6").body, link } } : undefined;
    };
    const toolgate = new Toolgate({ url: host.url });
    toolgate.connection.remember({ ...link, roles: [], groups: [], csrf: "before" });
    host.add(suspension({ suspension: "s6" }));
    await toolgate.suspension("s6");
    expect(host.at("GET", /s6/).map(({ headers }) => headers["x-toolgate-csrf"])).toEqual([
      "before",
      "links",
    ]);
  });

  it("repeats nothing as the principal that the page switched to", async () => {
    host.instead = ({ path }) => (path === "/v1/session" ? session("w5") : undefined);
    const toolgate = new Toolgate({ url: host.url });
    await toolgate.session();
    host.add(suspension({ suspension: "s5" }));
    host.instead = ({ path }) => {
      if (path === "/v1/session") return undefined;
      // The page opens a link during the request.
      toolgate.connection.remember({
        principal: "oncall",
        roles: [],
        groups: [],
        only: "s5",
        csrf: "links",
      });
      return problem(403, "not-allowed", "the word is wrong");
    };
    await expect(toolgate.resolve("s5", { decision: "approve" })).rejects.toMatchObject({
      code: "not-allowed",
    });
    expect(host.at("POST", /resolve/).map(({ headers }) => headers["x-toolgate-csrf"])).toEqual(["w5"]);
  });
});
