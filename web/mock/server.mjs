// A mock host: enough of the API, with invented data, to work on the console's pages without building Rust.
// Run `npm run mock -w web` beside `TOOLGATE_HOST=http://127.0.0.1:7399 npm run dev -w web`. Any token logs in.

import { createServer } from "node:http";
import * as made from "./contents.mjs";

const PORT = Number(process.env.PORT ?? 7399);
const inboxes = new Set();
const feeds = new Map();
/** The sessions by their cookie. */
const sessions = new Map();
let session = null;

const at = () => new Date().toISOString();
const send = (response, status, body) => {
  const type = status < 400 ? "application/json" : "application/problem+json";
  response.writeHead(status, { "content-type": type }).end(body === undefined ? "" : JSON.stringify(body));
};
const problem = (response, status, code, detail, more = {}) =>
  send(response, status, { type: `/problems/${code}`, title: code, status, code, detail, ...more });
const tell = (stream, event, data, id) =>
  stream.write(`${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
const follow = (response, set) => {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  set.add(response);
  response.on("close", () => set.delete(response));
};

const cookieOf = (request) => /mock=(\d+)/.exec(request.headers.cookie ?? "")?.[1];

function enter(response, entered) {
  const cookie = String(sessions.size + 1);
  sessions.set(cookie, entered);
  session = entered;
  response.setHeader("set-cookie", `mock=${cookie}; HttpOnly; SameSite=Strict; Path=/`);
}

async function read(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text === "" ? {} : JSON.parse(text);
}

function close(suspension, answer) {
  suspension.state = answer.decision;
  suspension.closed = {
    state: answer.decision,
    by: session.principal,
    at: at(),
    decision: answer.decision,
    ...answer,
  };
  for (const stream of inboxes) {
    tell(stream, "pending.closed", {
      suspension: suspension.suspension,
      conversation: suspension.conversation,
      ...suspension.closed,
    });
  }
}

const open = () => made.suspensions.filter(({ state }) => state === "open");

const routes = {
  "GET /v1/session": (_, response) =>
    session ? send(response, 200, session) : problem(response, 401, "unauthenticated", "there is no session"),
  "POST /v1/session": async (request, response) => {
    const { token } = await read(request);
    if (!token?.startsWith("tg_"))
      return problem(response, 401, "unauthenticated", "no such token; tokens begin with tg_");
    enter(response, made.session);
    send(response, 200, session);
  },
  "DELETE /v1/session": (request, response) => {
    sessions.delete(cookieOf(request));
    send(response, 200, { ok: true });
  },
  "POST /v1/session/link": (_, response) => {
    enter(response, {
      ...made.session,
      principal: "oncall",
      roles: ["approver"],
      only: made.suspensions[0].suspension,
    });
    send(response, 200, session);
  },
  "GET /v1/pending": (request, response) => {
    const query = new URL(request.url, "http://mock").searchParams;
    const fits = (one) =>
      ["conversation", "tool", "caller", "call", "kind"].every(
        (name) => !query.has(name) || query.get(name) === one[name],
      );
    // The mock keeps nothing that has ended.
    const suspensions = query.get("state") === "closed" ? [] : open().filter(fits);
    send(response, 200, { suspensions, next: null });
  },
  "GET /v1/pending/counts": (_, response) =>
    send(response, 200, { open: open().length, by_kind: {}, complete: true }),
  "GET /v1/pending/events": (_, response) => {
    follow(response, inboxes);
    tell(response, "pending.ready", {});
  },
  "GET /v1/suspensions/:s": (_, response, { s }) => {
    const found = made.suspensions.find(({ suspension }) => suspension === s);
    found ? send(response, 200, found) : problem(response, 404, "not-found", "there is no such question");
  },
  "POST /v1/suspensions/:s/resolve": async (request, response, { s }) => {
    const found = made.suspensions.find(({ suspension }) => suspension === s);
    const answer = await read(request);
    if (found.closed)
      return problem(response, 409, "stale", `${found.closed.by} answered already`, found.closed);
    close(found, answer);
    send(response, 200, {
      ok: true,
      replayed: false,
      suspension: s,
      state: answer.decision,
      votes_missing: 0,
    });
  },
  "POST /v1/pending/resolve": async (request, response) => {
    const { answers } = await read(request);
    for (const answer of answers)
      close(
        made.suspensions.find(({ suspension }) => suspension === answer.suspension),
        answer,
      );
    send(response, 200, {
      answers: answers.map(({ suspension }) => ({ suspension, status: 200, ok: true, replayed: false })),
    });
  },
  "GET /v1/conversations": (_, response) =>
    send(response, 200, { conversations: made.conversations, next: null }),
  "GET /v1/conversations/:c/events": (_, response, { c }) => {
    if (!feeds.has(c)) feeds.set(c, new Set());
    follow(response, feeds.get(c));
    for (const [index, event] of made.events.entries()) tell(response, event.event, event, index + 1);
    let part = 0;
    const timer = setInterval(() => {
      part = (part + 0.02) % 1;
      tell(response, "call.progress", {
        event: "call.progress",
        turn: "turn_2",
        call: "c5",
        message: "clustering documents",
        fraction: part,
      });
    }, 500);
    response.on("close", () => clearInterval(timer));
  },
  "GET /v1/conversations/:c/calls/:call/log": (_, response, { call }) =>
    send(response, 200, { turn: "turn_1", call, status: "running", runs: made.logs }),
  "GET /v1/events": (_, response) => follow(response, new Set()),
  "GET /v1/plugins": (_, response) => send(response, 200, { plugins: made.plugins }),
  "GET /v1/tools": (_, response) => send(response, 200, { tools: made.tools }),
  "GET /v1/audit": (_, response) =>
    send(response, 200, { entries: made.audit, next: null, head: { position: 12, hash: made.digest } }),
  "GET /v1/standing-approvals": (_, response) => send(response, 200, { standing_approvals: made.standing }),
  "DELETE /v1/standing-approvals/:id": (_, response, { id }) => {
    const found = made.standing.find((one) => one.id === id);
    Object.assign(found, { state: "revoked", revoked_by: session.principal, revoked_at: at() });
    send(response, 200, { ok: true });
  },
  "POST /v1/policy/explain": (_, response) => send(response, 200, made.explained),
};

function route(method, path) {
  for (const [name, does] of Object.entries(routes)) {
    const [verb, pattern] = name.split(" ");
    const names = [...pattern.matchAll(/:(\w+)/g)].map(([, part]) => part);
    const shape = new RegExp(`^${pattern.replace(/:\w+/g, "([^/]+)")}$`);
    const found = verb === method && shape.exec(path);
    if (found)
      return (request, response) =>
        does(
          request,
          response,
          Object.fromEntries(names.map((part, i) => [part, decodeURIComponent(found[i + 1])])),
        );
  }
  return (_, response) => problem(response, 404, "not-found", `there is nothing at ${path}`);
}

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://mock");
  session = sessions.get(cookieOf(request)) ?? null;
  if (session === null && !pathname.startsWith("/v1/session"))
    return problem(response, 401, "unauthenticated", "log in first");
  await route(request.method, pathname)(request, response);
}).listen(PORT, "127.0.0.1");
