/**
 * Tools that this page carries out: where the user is, which file they pick. The page attaches to a conversation as the
 * client of these tools; each call is carried out once, however often the host tells of it, and answered with its result.
 */
import type { Toolgate } from "./client.js";
import { pause } from "./clock.js";
import { path } from "./connection.js";
import { ToolgateError } from "./problem.js";
import { follow, type StreamStatus } from "./stream.js";
import type { Answer, FeedEvent, Suspension } from "./wire.js";

/** What a function is told beside its arguments. */
export interface ClientCall {
  /** Ends when nobody waits for the result any more: cancelled, expired, or answered elsewhere. */
  signal: AbortSignal;
  /** The call in full: its tool, conversation, context and expiry. */
  suspension: Suspension;
}

/**
 * Carries out one call. Its result must fit the tool's schema. If it throws, the call fails with the error's message, which
 * the model reads: let it hold nothing that is not for the model.
 */
// biome-ignore lint/suspicious/noExplicitAny: the arguments have been checked against the schema of the tool, which TypeScript does not know
export type ClientTool = (args: any, call: ClientCall) => unknown;

export interface ClientToolsOptions {
  conversation: string;
  /** A function for each tool, by its name. */
  tools: Record<string, ClientTool>;
  /** Ends it, as `stop()` does. */
  signal?: AbortSignal;
  onStatus?: (status: StreamStatus) => void;
  /** What failed beside the calls themselves: an answer that was not taken, for instance. */
  onError?: (error: unknown, suspension: Suspension | undefined) => void;
}

export interface ClientTools {
  /** Detaches, and ends what is being carried out. */
  stop(): void;
  /** Settles when it has stopped. Rejects if the host does not let this page attach. */
  readonly done: Promise<void>;
}

/** The longest comment that is sent as the reason of a failure, in characters. */
const LONGEST_REASON = 1000;

/** After so many milliseconds it is asked again whether a call still waits, where the host did not say. */
const LOOK = 1000;

export function clientTools(toolgate: Toolgate, options: ClientToolsOptions): ClientTools {
  const stopping = new AbortController();
  options.signal?.addEventListener("abort", () => stopping.abort(), { once: true });
  if (options.signal?.aborted) stopping.abort();
  const done = new Attached(toolgate, options, stopping.signal).run();
  // Whoever does not look at `done` has `onError`.
  done.catch((error: unknown) => options.onError?.(error, undefined));
  return { stop: () => stopping.abort(), done };
}

class Attached {
  /** Every suspension that was taken on, so that it is not taken on again when the host tells of it again. */
  readonly #taken = new Set<string>();
  readonly #running = new Map<string, { controller: AbortController; suspension: Suspension }>();

  constructor(
    readonly toolgate: Toolgate,
    readonly options: ClientToolsOptions,
    readonly signal: AbortSignal,
  ) {}

  async run(): Promise<void> {
    const { conversation, tools, onStatus } = this.options;
    // Not resumed: a client that comes back is told what still waits, and what is over is of no use to it.
    const stream = follow(this.toolgate.connection, path`/v1/conversations/${conversation}/events`, {
      signal: this.signal,
      query: { client: Object.keys(tools).join(",") },
      // A page that is not seen is the client all the same.
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
      case "suspension.withdrawn":
        if (event.suspension !== undefined) this.#running.get(event.suspension)?.controller.abort();
        break;
      case "call.settled":
        for (const { controller, suspension } of this.#running.values()) {
          if (suspension.turn === event.turn && suspension.call === event.call) controller.abort();
        }
        break;
    }
  }

  /** Ends what is carried out for nobody: no stream tells of an end that came before it was opened. */
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
        // There is no such thing any more, or it is not for this page.
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
      const result = await tool(suspension.arguments, { signal, suspension });
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
      // Nobody else knows better, and without an answer the call would wait until it expires.
      await this.#answer(suspension, failure(`the page's result was refused: ${error.detail}`), signal);
      throw error;
    }
  }

  /** Sends an answer until the host has taken or refused it. The same answer twice is one answer. */
  async #answer(suspension: Suspension, answer: Answer, signal: AbortSignal): Promise<void> {
    const { clock } = this.toolgate;
    const body = { ...answer, expect_digest: suspension.digest };
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.toolgate.resolve(suspension.suspension, body);
        return;
      } catch (error) {
        if (!(error instanceof ToolgateError)) throw error;
        // Answered by another client, expired or cancelled: nobody waits for this one.
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
  return { decision: "error", comment: reason.slice(0, LONGEST_REASON) };
}
