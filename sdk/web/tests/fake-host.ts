/** A small host over real HTTP: suspensions, events and answers. Tests control it by its methods. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { members } from "../src/json-text.js";
import type { PendingClosed, Problem, Suspension } from "../src/wire.js";

export interface Seen {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  body: string;
}

type Stream = { response: ServerResponse; path: string; query: URLSearchParams };
type Reply = { status: number; body?: unknown };

export class FakeHost {
  readonly seen: Seen[] = [];
  readonly open = new Map<string, Suspension>();
  readonly ended = new Map<string, Suspension>();
  /** The committed events of conversations, each with its id. */
  readonly log: { id: string; event: string; data: unknown }[] = [];
  readonly streams = new Set<Stream>();
  /** Replaces the response of a request, if it returns one. */
  instead: ((seen: Seen) => Reply | undefined) | undefined;
  #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<FakeHost> {
    const server = createServer();
    const host = new FakeHost(server);
    server.on("request", (request, response) => void host.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return host;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Breaks every stream, as a restart does. */
  cut(): void {
    for (const { response } of this.streams) response.destroy();
    this.streams.clear();
  }

  /** Opens a suspension. */
  add(suspension: Suspension): void {
    this.open.set(suspension.suspension, suspension);
    this.tell("/v1/pending/events", "pending.opened", suspension);
  }

  change(suspension: Suspension): void {
    this.open.set(suspension.suspension, suspension);
    this.tell("/v1/pending/events", "pending.changed", suspension);
  }

  /** Closes a suspension. `via` may be a word that no host sends. `edit` is the JSON text of the approved arguments, if they were edited. */
  end(id: string, state: string, by: string, via?: string, edit?: string): void {
    const suspension = this.open.get(id);
    if (suspension === undefined) return;
    const at = "2026-01-01T00:00:00Z";
    this.open.delete(id);
    const described = { state, by, at, ...(via && { via: via as "link" }) };
    const { conversation, display } = suspension;
    this.ended.set(id, {
      ...suspension,
      state,
      closed: { ...described, ...(edit && { arguments: JSON.parse(edit), arguments_digest: "sha256:ed" }) },
      ...(edit && display && { display: { ...display, approved_arguments: edit } }),
    });
    const closed: PendingClosed = { suspension: id, conversation, ...described, edited: edit !== undefined };
    this.tell("/v1/pending/events", "pending.closed", closed);
  }

  /** Commits an event of a conversation. */
  commit(event: string, data: object): void {
    const id = `${this.log.length + 1}-1`;
    this.log.push({ id, event, data: { event, ...data } });
    for (const { response, path } of this.streams) {
      if (path.startsWith("/v1/conversations/")) response.write(frame(event, { event, ...data }, id));
    }
  }

  tell(path: string, event: string, data: unknown): void {
    for (const stream of this.streams) if (stream.path === path) stream.response.write(frame(event, data));
  }

  /** The requests to a path. */
  at(method: string, path: RegExp): Seen[] {
    return this.seen.filter((seen) => seen.method === method && path.test(seen.path));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(request.url ?? "/", this.url);
    const cors = {
      "access-control-allow-origin": request.headers.origin ?? "*",
      "access-control-allow-headers": "authorization, content-type, last-event-id, x-toolgate-csrf",
      "access-control-allow-methods": "GET, POST, DELETE",
    };
    for (const [name, value] of Object.entries(cors)) response.setHeader(name, value);
    if (request.method === "OPTIONS") {
      response.writeHead(204).end();
      return;
    }
    let body = "";
    for await (const chunk of request) body += chunk;
    const seen: Seen = { method: request.method ?? "", path, query, headers: request.headers, body };
    this.seen.push(seen);
    const reply = this.instead?.(seen) ?? this.#reply(seen, response);
    if (reply === undefined) return;
    const type = reply.status >= 400 ? "application/problem+json" : "application/json";
    response.writeHead(reply.status, { "content-type": type });
    response.end(reply.body === undefined ? undefined : JSON.stringify(reply.body));
  }

  #reply(seen: Seen, response: ServerResponse): Reply | undefined {
    const { method, path } = seen;
    if (path.endsWith("/events")) {
      this.#stream(seen, response);
      return undefined;
    }
    if (path.endsWith("/defaults")) return { status: 200, body: {} };
    if (path.endsWith("/progress")) return { status: 200, body: { ok: true, dropped: false } };
    if (path === "/v1/pending" && method === "GET") {
      return { status: 200, body: { suspensions: [...this.open.values()], next: null } };
    }
    if (path === "/v1/pending/resolve") {
      const { answers } = JSON.parse(seen.body) as { answers: { suspension: string; decision: string }[] };
      const described = answers.map(({ suspension, decision }) => {
        const { status, body } = this.#resolve(suspension, decision);
        return status === 200 ? { suspension, status, ok: body } : { suspension, status, problem: body };
      });
      return { status: 200, body: { answers: described } };
    }
    const [, id = "", resolves] = /^\/v1\/suspensions\/([^/]+)(\/resolve)?$/.exec(path) ?? [];
    if (resolves !== undefined)
      return this.#resolve(id, (JSON.parse(seen.body) as { decision: string }).decision, editIn(seen.body));
    const found = this.open.get(id) ?? this.ended.get(id);
    return found === undefined
      ? problem(404, "not-found", "there is no such thing")
      : { status: 200, body: found };
  }

  #resolve(id: string, decision: string, edit?: string): Reply {
    const ended = this.ended.get(id)?.closed;
    if (!this.open.has(id)) {
      return problem(409, "stale", "no longer open", {
        state: ended?.state ?? "unknown",
        by: ended?.by ?? null,
      });
    }
    this.end(id, decision, "me", undefined, edit);
    return {
      status: 200,
      body: { ok: true, replayed: false, suspension: id, state: decision, votes_missing: 0 },
    };
  }

  #stream({ path, query, headers }: Seen, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": hello\n\n");
    const stream = { response, path, query };
    this.streams.add(stream);
    response.on("close", () => this.streams.delete(stream));
    if (path === "/v1/pending/events") response.write(frame("pending.ready", {}));
    if (!path.startsWith("/v1/conversations/")) return;
    if (query.has("client")) {
      for (const suspension of this.open.values()) {
        const described = { event: "call.suspended", snapshot: true, ...suspension };
        if (suspension.kind === "client_exec") response.write(frame("call.suspended", described));
      }
      return;
    }
    const last = headers["last-event-id"];
    const from = this.log.findIndex(({ id }) => id === last) + 1;
    for (const { id, event, data } of this.log.slice(from)) response.write(frame(event, data, id));
  }
}

export function problem(status: number, code: string, detail: string, more: Partial<Problem> = {}): Reply {
  return { status, body: { type: `/problems/${code}`, title: code, status, code, detail, ...more } };
}

/** The text of the arguments in the body of an answer. */
function editIn(body: string): string | undefined {
  return members(body)?.find(({ name }) => name === "arguments")?.text;
}

function frame(event: string, data: unknown, id?: string): string {
  return `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

let minted = 0;

/** An open approval with the given members. */
export function suspension(given: Partial<Suspension> = {}): Suspension {
  minted += 1;
  const args = given.arguments ?? { to: "bob@example.com", amount: 5000 };
  return {
    suspension: `susp_${String(minted).padStart(4, "0")}`,
    conversation: "c",
    turn: "turn_1",
    call: `call_${minted}`,
    tool: "pay",
    plugin: "bank",
    executor: "server",
    kind: "approval",
    state: "open",
    prompt: "Pay bob?",
    arguments: args,
    caller: "agent",
    allowed: ["approve", "deny"],
    editable: "none",
    created_at: "2026-01-01T00:00:00Z",
    expires_at: "2026-01-01T00:10:00Z",
    on_expiry: "error",
    digest: "sha256:aa",
    display: { prompt: "Pay bob?", arguments: JSON.stringify(args) },
    you: { may_answer: true, voted: false, counts_again: false },
    needs: [],
    votes: [],
    ...given,
  } as Suspension;
}
