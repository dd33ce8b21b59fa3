/**
 * Server-sent events over `fetch`. Unlike `EventSource`, it can send a bearer token and reports why the host refused. A broken
 * stream is opened again with the id of the last event, after a pause that doubles and has random jitter.
 */
import { createParser } from "eventsource-parser";
import { pause } from "./clock.js";
import type { Connection } from "./connection.js";
import { ToolgateError } from "./problem.js";
import { isSeen, onSeen, seen } from "./visibility.js";

/** One event as it was sent. */
export interface StreamMessage {
  /** The name of the event. */
  event: string;
  /** The position to resume from; absent for live-only streams. */
  id: string | undefined;
  /** Its data: JSON. */
  data: string;
}

/** The state of a stream. `waiting` is between two attempts; `hidden` lasts until the page is visible. */
export type StreamStatus =
  | { state: "connecting" }
  | { state: "open" }
  | { state: "hidden" }
  | {
      state: "waiting";
      /** Why the stream broke, if the host said so. */
      error: ToolgateError | undefined;
      /** Milliseconds until the next attempt. */
      retryIn: number;
    };

/** How to follow a stream. */
export interface StreamOptions {
  /** Ends the stream. */
  signal: AbortSignal;
  /** The parameters of the request. */
  query?: Record<string, string | undefined>;
  /** Whether a reopened stream resumes after the last event. Otherwise it starts from the beginning. */
  resume?: boolean;
  /** The stream starts after the event with this id. */
  lastEventId?: string;
  /** Receives each change of the stream. */
  onStatus?: (status: StreamStatus) => void;
  /**
   * Whether the stream continues while the page is hidden. Otherwise the connection is closed until the page is visible,
   * because a browser has few connections.
   */
  whileHidden?: boolean;
  /** After this many milliseconds without data, not even a heartbeat, the connection is closed. */
  silenceMs?: number;
}

/** The first and the longest pause. */
const FIRST_PAUSE = 500;
const MAX_PAUSE = 30_000;
/** The host sends a heartbeat every 15 seconds by default. */
const MAX_SILENCE_MS = 60_000;

/**
 * Follows a stream until the signal ends it. Permanent errors (not allowed, not found) are thrown. Transient errors are retried
 * without limit.
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
    const most = Math.min(FIRST_PAUSE * 2 ** failures, MAX_PAUSE);
    failures += 1;
    // At least half of the pause, so that the clients do not all return to a restarted host at the same time.
    const retryIn = Math.max(most * (0.5 + clock.random() / 2), failed?.retryAfter ?? 0);
    options.onStatus?.({ state: "waiting", error: failed, retryIn });
    if (!(await pause(clock, retryIn, signal))) return;
  }
}

/** One connection, until it ends. If it ends because the page is hidden, `hidden` is called first. */
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
    wake = connection.clock.after(options.silenceMs ?? MAX_SILENCE_MS, stop);
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
