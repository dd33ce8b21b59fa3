/** A host that a test answers for, and JSON that it sends. */
import { vi } from "vitest";

export const SESSION = { principal: "ann", roles: ["approver"], groups: [], csrf: "word" };
export const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

/** A stream of the inbox that has begun. */
function live(): Response {
  const begun = new TextEncoder().encode("event: pending.ready\ndata: {}\n\n");
  return new Response(new ReadableStream({ start: (stream) => stream.enqueue(begun) }));
}

/** A host that records its requests. Its streams are silent, except the inbox's if it `isLive`. */
export function host(
  answer: (asked: string, request: Request) => Response | undefined | Promise<Response | undefined>,
  isLive = false,
) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const url = new URL(request.url);
    const what = `${request.method} ${url.pathname}${url.search}`;
    if (url.pathname === "/v1/pending/events" && isLive) return live();
    if (url.pathname.endsWith("/events")) return new Promise(() => {});
    asked.push(what);
    return (await answer(what, request)) ?? json({});
  });
  return asked;
}

/** An open suspension. Its principal cannot answer it. */
export const OPEN = {
  suspension: "susp_1",
  conversation: "c",
  turn: "turn_1",
  call: "1",
  tool: "pay",
  state: "open",
  prompt_by: "host",
  arguments: {},
  arguments_digest: "",
  caller: "agent",
  allowed: [],
  editable: "none",
  needs: [],
  created_at: "2026-01-01T00:00:00Z",
  expires_at: "2999-01-01T00:00:00Z",
  on_expiry: "error",
  digest: "sha256:aa",
  you: { may_answer: false, voted: false, counts_again: false, may_delegate: false },
};
