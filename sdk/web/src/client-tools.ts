/**
 * Tools that this page carries out: where the user is, which file they pick. The page attaches to a conversation as the
 * client of these tools. It carries out each call once, even if the host reports it again, and answers with the result.
 */
import { type Clock, pause } from "./clock.js";
import { type Connection, path } from "./connection.js";
import { ToolgateError } from "./problem.js";
import { follow, type StreamStatus } from "./stream.js";
import type { Answer, Answered, FeedEvent, ProgressReport, ProgressReported, Suspension } from "./wire.js";

/** The part of the client that the tools use. */
interface Host {
  readonly connection: Connection;
  readonly clock: Clock;
  suspension(id: string, signal: AbortSignal): Promise<Suspension>;
  resolve(suspension: string, answer: Answer): Promise<Answered>;
  progress(suspension: string, report: ProgressReport, signal: AbortSignal): Promise<ProgressReported>;
}

/** The context of a call. */
export interface ClientCall {
  /** Aborts once the result is no longer needed: the call was cancelled, expired or answered elsewhere. */
  signal: AbortSignal;
  /** The call in full: its tool, conversation, context and expiry. */
  suspension: Suspension;
  /**
   * Reports progress to those who follow the conversation: one line for people, the finished part from 0 to 1, and any JSON
   * for programs. Does nothing for a tool that does not declare `streaming`. While a report is sent, only the newest later
   * one waits. A failure to report does not affect the call.
   */
  progress(message: string, fraction?: number, data?: unknown): void;
}

/**
 * Carries out one call. The result must match the tool's schema. If the function throws, the call fails with the error's message.
 * The model reads that message, so it must hold no secrets.
 */
// biome-ignore lint/suspicious/noExplicitAny: the arguments have been checked against the schema of the tool, which TypeScript does not know
export type ClientTool = (args: any, call: ClientCall) => unknown;

/** The tools that a page carries out, and for which conversation. */
export interface ClientToolsOptions {
  /** The conversation whose calls this page carries out. */
  conversation: string;
  /** A function for each tool, by its name. */
  tools: Record<string, ClientTool>;
  /** Stops the tools, as `stop()` does. */
  signal?: AbortSignal;
  /** Receives each change of the stream. */
  onStatus?: (status: StreamStatus) => void;
  /** Receives failures outside of the calls, such as a rejected answer. */
  onError?: (error: unknown, suspension: Suspension | undefined) => void;
}

/** Tools that a page carries out, until they are stopped. */
export interface ClientTools {
  /** Detaches from the conversation and aborts the running calls. */
  stop(): void;
  /** Settles after the stop. Rejects if the host does not let this page attach. */
  readonly done: Promise<void>;
}

/** Characters of the longest reason of a failure. */
const MAX_REASON = 1000;

/** Milliseconds before the page asks again whether a call is still open, where the host does not say when to. */
const LOOK = 1000;

export function clientTools(toolgate: Host, options: ClientToolsOptions): ClientTools {
  const stopping = new AbortController();
  options.signal?.addEventListener("abort", () => stopping.abort(), { once: true });
  if (options.signal?.aborted) stopping.abort();
  const done = new Attached(toolgate, options, stopping.signal).run();
  // A page that ignores `done` has `onError`.
  done.catch((error: unknown) => options.onError?.(error, undefined));
  return { stop: () => stopping.abort(), done };
}

class Attached {
  /** Suspensions that were started, so that a repeated event does not start them again. */
  readonly #taken = new Set<string>();
  readonly #running = new Map<string, { controller: AbortController; suspension: Suspension }>();

  constructor(
    readonly toolgate: Host,
    readonly options: ClientToolsOptions,
    readonly signal: AbortSignal,
  ) {}

  async run(): Promise<void> {
    const { conversation, tools, onStatus } = this.options;
    // Not resumed: the host reports every open call to a client that attaches again.
    const stream = follow(this.toolgate.connection, path`/v1/conversations/${conversation}/events`, {
      signal: this.signal,
      query: { client: Object.keys(tools).join(",") },
      // A hidden page is still the client.
      whileHidden: true,
      onStatus: (status) => {
        if (status.state === "open") for (const id of this.#running.keys()) void this.#look(id);
        onStatus?.(status);
      },
    });
    try {
      for await (const message of stream) this.#hear(JSON.parse(message.data) as FeedEvent);
    } finally {
      for (const { controller } of this.#running.values()) controller.abort();
    }
  }

  #hear(event: FeedEvent): void {
    switch (event.event) {
      case "call.suspended":
        this.#take(event as unknown as Suspension);
        break;
      case "call.resolved":
      case "suspension.expired":
        if (event.suspension !== undefined) this.#running.get(event.suspension)?.controller.abort();
        break;
      case "call.settled":
        for (const { controller, suspension } of this.#running.values()) {
          if (suspension.turn === event.turn && suspension.call === event.call) controller.abort();
        }
        break;
    }
  }

  /** Aborts calls that ended before the stream was opened, because no event reports them. */
  async #look(id: string): Promise<void> {
    const { clock } = this.toolgate;
    const stopped = this.#running.get(id)?.controller.signal;
    while (stopped !== undefined && this.#running.has(id)) {
      try {
        const { closed } = await this.toolgate.suspension(id, stopped);
        if (closed != null) this.#running.get(id)?.controller.abort();
        return;
      } catch (error) {
        if (!(error instanceof ToolgateError)) return;
        // The suspension no longer exists, or this page may not see it.
        if (!error.isTransient) this.#running.get(id)?.controller.abort();
        if (!(await pause(clock, Math.max(LOOK, error.retryAfter ?? 0), stopped))) return;
      }
    }
  }

  #take(suspension: Suspension): void {
    const id = suspension.suspension;
    const { tools } = this.options;
    const isOurs = suspension.kind === "client_exec" && Object.hasOwn(tools, suspension.tool);
    const tool = isOurs ? tools[suspension.tool] : undefined;
    if (tool === undefined || this.#taken.has(id)) return;
    this.#taken.add(id);
    const controller = new AbortController();
    this.#running.set(id, { controller, suspension });
    this.#carryOut(tool, suspension, controller.signal)
      .catch((error: unknown) => this.options.onError?.(error, suspension))
      .finally(() => this.#running.delete(id));
  }

  async #carryOut(tool: ClientTool, suspension: Suspension, signal: AbortSignal): Promise<void> {
    let answer: Answer;
    try {
      const progress = this.#reports(suspension, signal);
      const result = await tool(suspension.arguments, { signal, suspension, progress });
      answer = { decision: "result", data: result ?? null };
    } catch (error) {
      answer = failure(error instanceof Error ? error.message : String(error));
    }
    if (signal.aborted) return;
    try {
      await this.#answer(suspension, answer, signal);
    } catch (error) {
      const unfit =
        error instanceof ToolgateError && (error.code === "invalid" || error.code === "too-large");
      if (!unfit || answer.decision === "error") throw error;
      // Without an answer the call would wait until it expires.
      await this.#answer(suspension, failure(`the page's result was refused: ${error.detail}`), signal);
      throw error;
    }
  }

  /** Sends the reports of a call, one after the other. A report that waits is replaced by the next one. */
  #reports(suspension: Suspension, signal: AbortSignal): ClientCall["progress"] {
    let waiting: ProgressReport | undefined;
    let isSending = false;
    const send = async () => {
      isSending = true;
      while (waiting !== undefined && !signal.aborted) {
        const report = waiting;
        waiting = undefined;
        try {
          await this.toolgate.progress(suspension.suspension, report, signal);
        } catch (error) {
          // The call has ended, or the host cannot be reached. A report that is late is worth nothing.
          const isLate = error instanceof ToolgateError && (error.code === "stale" || error.isTransient);
          if (!isLate && !signal.aborted) this.options.onError?.(error, suspension);
        }
      }
      isSending = false;
    };
    return (message, fraction, data) => {
      if (suspension.streaming !== true) return;
      waiting = {
        message,
        ...(fraction !== undefined && { fraction }),
        ...(data !== undefined && { data: data as never }),
      };
      if (!isSending) void send();
    };
  }

  /** Sends an answer until the host accepts or refuses it. Sending the same answer twice has no further effect. */
  async #answer(suspension: Suspension, answer: Answer, signal: AbortSignal): Promise<void> {
    const { clock } = this.toolgate;
    const body = { ...answer, expect_digest: suspension.digest };
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.toolgate.resolve(suspension.suspension, body);
        return;
      } catch (error) {
        if (!(error instanceof ToolgateError)) throw error;
        // Another client answered, or the call expired or was cancelled.
        if (error.code === "stale") return;
        if (!error.isTransient) throw error;
        const most = Math.min(500 * 2 ** attempt, 10_000);
        const rest = Math.max(most * (0.5 + clock.random() / 2), error.retryAfter ?? 0);
        if (!(await pause(clock, rest, signal))) return;
      }
    }
  }
}

function failure(reason: string): Answer {
  return { decision: "error", comment: reason.slice(0, MAX_REASON) };
}
