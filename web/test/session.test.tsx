// Log-in and log-out, without repeated requests.
import { type ToolgateApproval, ToolgateInbox } from "@toolgate/web/elements";
import { act } from "react";
import { describe, expect, it, vi } from "vitest";
import { App } from "../src/app";
import { navigate } from "../src/router";
import { host, json, OPEN, SESSION } from "./fake-host";
import { place, root } from "./mounted";

const OUT = { code: "unauthenticated", status: 401, title: "", detail: "log in first" };

const shown = (text: string) => vi.waitFor(() => expect(place.textContent).toContain(text));
const named = (name: string) =>
  [...document.querySelectorAll("button, [role=menuitem]")].find((one) => one.textContent === name) as
    | HTMLElement
    | undefined;

function write(input: HTMLInputElement, value: string): void {
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set?.call(input, value);
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

it("logs in once for repeated Enter, and says so meanwhile", async () => {
  let enter = (_: Response) => {};
  const asked = host((what) => {
    if (what === "GET /v1/session") return json(OUT, 401);
    if (what === "POST /v1/session") return new Promise((resolve) => (enter = resolve));
    return undefined;
  });
  navigate("/login");
  await act(async () => root.render(<App />));
  await shown("Token");
  await act(async () => write(place.querySelector("input") as HTMLInputElement, "tg_x"));
  const form = place.querySelector("form");
  const submit = () => form?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await act(async () => {
    submit();
    submit();
  });
  await act(async () => submit());
  expect(asked.filter((one) => one === "POST /v1/session")).toHaveLength(1);
  expect(place.querySelector('form [role="status"]')?.textContent).toBe("Logging in …");
  expect(named("Logging in …")?.getAttribute("aria-disabled")).toBe("true");
  await act(async () => enter(json(OUT, 401)));
  await shown("log in first");
  // The user can try again.
  await act(async () => submit());
  expect(asked.filter((one) => one === "POST /v1/session")).toHaveLength(2);
});

it("opens a one-time link once for repeated presses", async () => {
  let enter = (_: Response) => {};
  const asked = host((what) => {
    if (what === "GET /v1/session") return json(OUT, 401);
    if (what === "POST /v1/session/link") return new Promise((resolve) => (enter = resolve));
    return undefined;
  });
  navigate("/link/abc");
  await act(async () => root.render(<App />));
  await shown("Show the question");
  await act(async () => {
    named("Show the question")?.click();
    named("Show the question")?.click();
  });
  await act(async () => named("Opening the question …")?.click());
  expect(asked.filter((one) => one === "POST /v1/session/link")).toHaveLength(1);
  await act(async () => enter(json({ ...OUT, detail: "the link was used" }, 401)));
  await shown("the link was used");
  expect(named("Show the question")).toBeUndefined();
});

it("goes to the login if the session had already ended", async () => {
  host((what) => {
    if (what === "GET /v1/session") return json(SESSION);
    if (what === "DELETE /v1/session") return json(OUT, 401);
    return undefined;
  });
  navigate("/conversations");
  await act(async () => root.render(<App />));
  await shown("Conversations");
  await act(async () => place.querySelector<HTMLElement>(".me")?.click());
  await vi.waitFor(() => expect(named("Log out")).toBeDefined());
  await act(async () => named("Log out")?.click());
  await shown("Token");
  expect(location.pathname).toBe("/login");
});

describe("a session that ends by itself", () => {
  const ASKED = {
    ...OPEN,
    kind: "approval",
    allowed: ["approve", "deny"],
    you: { ...OPEN.you, may_answer: true },
  };

  /** A host whose session can end. Anybody may log in with their name as the token. */
  function ending() {
    let session: object | undefined = SESSION;
    host(async (what, request) => {
      if (what === "GET /v1/session") return session ? json(session) : json(OUT, 401);
      if (what === "POST /v1/session") {
        const { token } = (await request.json()) as { token: string };
        session = { ...SESSION, principal: token };
        return json(session);
      }
      if (session === undefined) return json(OUT, 401);
      if (what === "GET /v1/suspensions/susp_1") return json(ASKED);
      if (what.startsWith("GET /v1/pending")) return json({ suspensions: [ASKED], next: null });
      return undefined;
    }, true);
    return () => {
      session = undefined;
    };
  }

  const comment = () =>
    vi.waitFor(() => {
      const inbox = place.querySelector("toolgate-inbox")?.shadowRoot ?? place;
      const card = inbox.querySelector("toolgate-approval")?.shadowRoot;
      const input = card?.querySelector<HTMLInputElement>("input[maxlength='1000']");
      if (!input) throw new Error("there is no card");
      return input;
    });

  async function deny() {
    const card = ((await comment()).getRootNode() as ShadowRoot).host as ToolgateApproval;
    await vi.waitFor(() => expect(card.isReady).toBe(true));
    await act(async () => void (await card.deny()));
  }

  async function logIn(name: string) {
    await shown("Token");
    await act(async () => write(place.querySelector("input") as HTMLInputElement, name));
    const form = place.querySelector("form");
    await act(async () => void form?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })));
  }

  it.each(["/suspensions/susp_1", "/"])("keeps a comment on %s for the same principal", async (page) => {
    const end = ending();
    navigate(page);
    await act(async () => root.render(<App />));
    await act(async () => write(await comment(), "half a sentence"));
    end();
    await deny();
    await logIn("ann");
    expect((await comment()).value).toBe("half a sentence");
  });

  it("drops it when another principal logs in", async () => {
    const end = ending();
    navigate("/suspensions/susp_1");
    await act(async () => root.render(<App />));
    await act(async () => write(await comment(), "half a sentence"));
    end();
    await deny();
    await logIn("bob");
    expect((await comment()).value).toBe("");
  });
});

it("moves into the inbox with j and k from the page", async () => {
  host((what) => (what === "GET /v1/session" ? json(SESSION) : undefined));
  navigate("/");
  await act(async () => root.render(<App />));
  await shown("Inbox");
  const moved = vi.spyOn(ToolgateInbox.prototype, "move");
  const press = (target: EventTarget, key: string) =>
    target.dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true }),
    );
  press(document.body, "j");
  press(document.body, "k");
  expect(moved.mock.calls).toEqual([[1], [-1]]);
  const field = document.body.appendChild(document.createElement("input"));
  press(field, "j");
  field.remove();
  // The inbox handles its own keys.
  press(place.querySelector("toolgate-inbox") as Element, "j");
  expect(moved.mock.calls).toEqual([[1], [-1], [1]]);
});

it("lists what has ended, with filters and all approvers", async () => {
  const closed = { state: "approve", by: "cid", approvers: ["ann", "cid"], at: "2026-01-01T00:00:00Z" };
  const pay = {
    suspension: "susp_1",
    kind: "approval",
    tool: "pay",
    caller: "agent",
    conversation: "c",
    closed,
  };
  const asked = host((what) => {
    if (what === "GET /v1/session") return json(SESSION);
    if (!what.startsWith("GET /v1/pending?")) return undefined;
    // With these filters, the host may return an empty page that has a next one.
    const isFirst = !what.includes("after=");
    return json({
      suspensions: isFirst ? [] : [pay],
      unreadable: isFirst ? [{ suspension: "susp_0" }] : [],
      next: isFirst ? "susp_0" : null,
    });
  });
  navigate("/?decision=approve&by=ann&turn=turn_1");
  await act(async () => root.render(<App />));
  await shown("Show more");
  await act(async () => named("Show more")?.click());
  await shown("pay for agent in c");
  expect(place.querySelector(".row-end")?.textContent).toContain("approve by ann and cid");
  expect(place.querySelector('a[href="/suspensions/susp_1"]')).not.toBeNull();
  expect(place.textContent).toContain("1 record cannot be read");
  const lists = asked.filter((one) => one.includes("state=closed"));
  expect(lists[0]).toBe(
    "GET /v1/pending?decision=approve&by=ann&turn=turn_1&state=closed&order=newest&limit=100",
  );
  expect(lists[1]).toBe(
    "GET /v1/pending?decision=approve&by=ann&turn=turn_1&state=closed&order=newest&after=susp_0&limit=100",
  );
  // The cards come back without the filters that only ends have.
  await act(async () => named("Waiting")?.click());
  expect(location.search).toBe("");
  expect(place.querySelector("toolgate-inbox")).not.toBeNull();
});

it("shows all standing approvals, and the state of a revoked one", async () => {
  const standing = (id: string, state = "active") => ({
    id,
    tool: `tool_${id}`,
    plugin: "lab",
    component: "sha256:aa",
    caller: "agent",
    arguments: {},
    pin: "all",
    by: "ann",
    suspension: "s",
    created_at: "2026-01-01T00:00:00Z",
    expires_at: "2026-01-01T00:00:00Z",
    uses: 5,
    used: 1,
    state,
  });
  const asked = host((what) => {
    if (what === "GET /v1/session") return json(SESSION);
    if (what === "GET /v1/standing-approvals")
      return json({ standing_approvals: [standing("a", "expired"), standing("b")], next: "b" });
    if (what === "GET /v1/standing-approvals?after=b")
      return json({ standing_approvals: [standing("c")], next: null });
    if (what === "DELETE /v1/standing-approvals/c") return json({ ...standing("c", "revoked") });
    return undefined;
  });
  const tools = () => [...place.querySelectorAll("h2")].map((one) => one.textContent);
  navigate("/standing");
  await act(async () => root.render(<App />));
  await shown("tool_a");
  expect(tools()).toEqual(["tool_b", "tool_a"]);
  expect(place.textContent).toContain("More exist.");
  await act(async () => named("Show more")?.click());
  await shown("tool_c");
  expect(tools()).toEqual(["tool_b", "tool_c", "tool_a"]);
  expect(named("Show more")).toBeUndefined();
  expect(place.textContent).not.toContain("More exist.");
  await act(async () =>
    [...place.querySelectorAll<HTMLElement>(".card")]
      .find((card) => card.textContent?.includes("tool_c"))
      ?.querySelector<HTMLElement>(".card-act")
      ?.click(),
  );
  const dialog = await vi.waitFor(() => document.querySelector('[role="alertdialog"]') as HTMLElement);
  await act(async () => dialog.querySelector<HTMLElement>(".button-bad")?.click());
  await vi.waitFor(() => expect(tools()).toEqual(["tool_b", "tool_a", "tool_c"]));
  expect(asked).toContain("DELETE /v1/standing-approvals/c");
  expect(place.textContent).toContain("revoked");
});

describe("beside a log-in, the session of a one-time link", () => {
  const AT = "2026-01-01T00:00:00Z";
  const LINK = { principal: "oncall", only: "susp_1", csrf: "links", expires_at: AT };
  const asked = { kind: "timer", state: "open", conversation: "c", caller: "agent", created_at: AT };
  const wordOf = (request: Request) => request.headers.get("x-toolgate-csrf");
  const me = (name: string) =>
    vi.waitFor(() => expect(place.querySelector(".me")?.textContent).toContain(name));

  it("applies on its question's page only, also after a reload", async () => {
    const said: string[] = [];
    host((what, request) => {
      if (what === "GET /v1/session")
        return json(wordOf(request) === LINK.csrf ? { ...SESSION, ...LINK } : { ...SESSION, link: LINK });
      said.push(`${what} in ${wordOf(request)}`);
      return json(asked);
    });
    const last = (expected: string) => vi.waitFor(() => expect(said.at(-1)).toBe(expected));
    navigate("/suspensions/susp_1");
    await act(async () => root.render(<App />));
    await me("oncall");
    await last("GET /v1/suspensions/susp_1 in links");
    expect(said.filter((one) => !one.endsWith("links"))).toEqual([]);

    await act(async () => navigate("/suspensions/susp_2"));
    await me("ann");
    await last("GET /v1/suspensions/susp_2 in word");
    expect(said.filter((one) => one.includes("susp_1") && !one.endsWith("links"))).toEqual([]);
    await act(async () => navigate("/conversations"));
    await shown("Conversations");
    await me("ann");
  });

  /** A host with the sessions of a link and of `log`. The link's session ends at the first read of the question. */
  function until(log: object | undefined) {
    const read: string[] = [];
    let isOver = false;
    host((what, request) => {
      const isLinks = wordOf(request) === LINK.csrf;
      if (what !== "GET /v1/session") {
        isOver = true;
        read.push(`${what} in ${wordOf(request)}`);
      }
      if (isOver && (isLinks || log === undefined)) return json(OUT, 401);
      if (what !== "GET /v1/session") return json(asked);
      return json(isLinks || !log ? { ...SESSION, ...LINK } : { ...log, ...(!isOver && { link: LINK }) });
    });
    return read;
  }

  it("ends visibly, and the log-in is used only on request", async () => {
    const read = until(SESSION);
    navigate("/suspensions/susp_1");
    const left = vi.spyOn(history, "replaceState");
    await act(async () => root.render(<App />));
    await shown("This link is no longer valid");
    expect(document.activeElement?.textContent).toBe("This link is no longer valid");
    expect(place.querySelector(".me, .frame")).toBeNull();
    expect(read).toEqual(["GET /v1/suspensions/susp_1 in links"]);
    expect(left).not.toHaveBeenCalled();
    await act(async () => named("Continue as ann")?.click());
    await me("ann");
    await vi.waitFor(() => expect(read.at(-1)).toBe("GET /v1/suspensions/susp_1 in word"));
  });

  it("ends visibly without a log-in, and links to the login", async () => {
    until(undefined);
    navigate("/suspensions/susp_1");
    await act(async () => root.render(<App />));
    await shown("This link is no longer valid");
    await act(async () => place.querySelector<HTMLElement>("a[href='/login']")?.click());
    await shown("Token");
  });
});

it("reads an opened log of a call again when the call has ended", async () => {
  let tell = (_: object) => {};
  const stream = new ReadableStream({
    start: (controller) => {
      tell = (event) => controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));
    },
  });
  const message = () => (asked.filter((one) => one.endsWith("/log")).length === 1 ? "first" : "last");
  const asked = host((what) => {
    if (what === "GET /v1/session") return json(SESSION);
    if (what.endsWith("/calls/c%2F1/log"))
      return json({
        turn: "t",
        call: "c/1",
        status: "running",
        runs: [{ run: 1, left_out: 0, lines: [{ line: 1, at: "", level: "info", message: message() }] }],
      });
    return undefined;
  });
  const others = fetch;
  vi.stubGlobal("fetch", (request: Request) =>
    new URL(request.url).pathname === "/v1/conversations/demo/events"
      ? Promise.resolve(new Response(stream))
      : others(request),
  );
  navigate("/conversations/demo");
  await act(async () => root.render(<App />));
  const of = (event: string, more: object = {}) => ({ event, turn: "t", call: "c/1", ...more });
  await act(async () => {
    tell(of("turn.started", { caller: "agent" }));
    tell(of("call.requested", { tool: "pay", arguments: {} }));
    tell(of("call.started", { attempt: 1 }));
    tell(of("call.log", { run: 1, line: 2, level: "warn", message: "live" }));
  });
  await vi.waitFor(() => expect(named("Log")).toBeDefined());
  expect(asked.some((one) => one.endsWith("/log"))).toBe(false);
  await act(async () => named("Log")?.click());
  await shown("1infofirst2warnlive");
  await act(async () => tell(of("call.settled", { outcome: "ok", content: { ok: true, result: 1 } })));
  await shown("1infolast2warnlive");
  expect(asked.filter((one) => one.endsWith("/log"))).toHaveLength(2);
});
