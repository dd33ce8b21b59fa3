/**
 * Server-sent events over `fetch`, which unlike `EventSource` can carry a bearer token and says why it was refused. A stream
 * that breaks is opened again, after a pause that doubles and is spread by chance, with the id of the last event.
 */
import { createParser } from "eventsource-parser";
import { pause } from "./clock.js";
import type { Connection } from "./connection.js";
import { ToolgateError } from "./problem.js";
import { isSeen, onSeen, seen } from "./visibility.js";

/** One event as it was sent. */
export interface StreamMessage {
  event: string;
  /** Where a stream that breaks now would go on; absent for what is live only. */
  id: string | undefined;
  data: string;
}

/** How a stream stands. `waiting` is between two attempts; `hidden` is until somebody sees the page again. */
export type StreamStatus =
  | { state: "connecting" }
  | { state: "open" }
  | { state: "hidden" }
  | { state: "waiting"; error: ToolgateError | undefined; retryIn: number };

export interface StreamOptions {
  signal: AbortSignal;
  query?: Record<string, string | undefined>;
  /** Whether a stream that is opened again goes on behind the last event. Without it, each begins anew. */
  resume?: boolean;
  /** The id of the event after which to begin. */
  lastEventId?: string;
  onStatus?: (status: StreamStatus) => void;
  /**
   * Whether the stream goes on while nobody sees the page. Without it, the connection is closed then, since a browser has few, and
   * opened again when somebody does.
   */
  whileHidden?: boolean;
  /** After so many milliseconds in which nothing came, not even a sign of life, the connection is given up. */
  silenceMs?: number;
}

/** The first pause, and the longest. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;
/** The host gives a sign of life every 15 seconds unless it is told otherwise. */
const SILENCE = 60_000;

/**
 * Follows a stream until the signal ends it. What does not pass by itself (no right, no such thing) is thrown; everything
 * else is tried again without end.
 */
export async function* follow(
  connection: Connection,
  path: string,
  options: StreamOptions,
): AsyncGenerator<StreamMessage, void, undefined> {
  const { clock } = connection;
  const { signal } = options;
  let last = options.lastEventId;
  let failures = 0;
  while (!signal.aborted) {
    if (options.whileHidden !== true && !isSeen()) {
      options.onStatus?.({ state: "hidden" });
      if (!(await seen(signal))) return;
    }
    let failed: ToolgateError | undefined;
    let wasHidden = false;
    const hidden = () => {
      wasHidden = true;
    };
    options.onStatus?.({ state: "connecting" });
    try {
      for await (const message of once(connection, path, last, options, hidden)) {
        failures = 0;
        if (options.resume === true && message.id !== undefined) last = message.id;
        yield message;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (wasHidden) continue;
      if (!(error instanceof ToolgateError) || !error.isTransient) throw error;
      failed = error;
    }
    if (signal.aborted) return;
    const most = Math.min(FIRST_PAUSE * 2 ** failures, LONGEST_PAUSE);
    failures += 1;
    // At least half of it, so that a host that restarts is not met by everybody at once, nor at once by anybody.
    const retryIn = Math.max(most * (0.5 + clock.random() / 2), failed?.retryAfter ?? 0);
    options.onStatus?.({ state: "waiting", error: failed, retryIn });
    if (!(await pause(clock, retryIn, signal))) return;
  }
}

/** One connection, until it ends. If that is because nobody sees the page any more, `hidden` is called first. */
async function* once(
  connection: Connection,
  path: string,
  last: string | undefined,
  options: StreamOptions,
  hidden: () => void,
): AsyncGenerator<StreamMessage, void, undefined> {
  const attempt = new AbortController();
  const stop = () => attempt.abort();
  options.signal.addEventListener("abort", stop, { once: true });
  const leave = onSeen((isSeen) => {
    if (isSeen || options.whileHidden === true) return;
    hidden();
    stop();
  });
  let wake = () => {};
  const watch = () => {
    wake();
    wake = connection.clock.after(options.silenceMs ?? SILENCE, stop);
  };
  try {
    watch();
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (last !== undefined) headers["last-event-id"] = last;
    const call = { headers, signal: attempt.signal, ...(options.query && { query: options.query }) };
    const response = await connection.open("GET", path, call);
    options.onStatus?.({ state: "open" });
    const ready: StreamMessage[] = [];
    const parser = createParser({
      onEvent: ({ event, id, data }) => ready.push({ event: event ?? "message", id, data }),
    });
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    while (reader !== undefined) {
      const { done, value } = await reader.read();
      if (done) return;
      watch();
      parser.feed(decoder.decode(value, { stream: true }));
      yield* ready.splice(0);
    }
  } catch (error) {
    throw options.signal.aborted || error instanceof ToolgateError ? error : broken(error);
  } finally {
    wake();
    leave();
    options.signal.removeEventListener("abort", stop);
    attempt.abort();
  }
}

function broken(cause: unknown): ToolgateError {
  return new ToolgateError("unreachable", 0, "the stream of events broke", [], undefined, { cause });
}
