/**
 * The open suspensions, kept up to date. The store subscribes before it lists, so that it misses nothing. After a gap in the
 * stream it lists again, and reports the suspensions that ended meanwhile.
 */
import type { Clock } from "./clock.js";
import type { Connection } from "./connection.js";
import { ToolgateError } from "./problem.js";
import { follow, type StreamStatus } from "./stream.js";
import type { PendingClosed, PendingFilter, PendingPage, Suspension, UnreadableSuspension } from "./wire.js";

/** The part of the client that the store uses. */
interface Source {
  readonly connection: Connection;
  readonly clock: Clock;
  pending(filter: PendingFilter & { after?: string }, signal: AbortSignal): Promise<PendingPage>;
  suspension(id: string, signal: AbortSignal): Promise<Suspension>;
}

/** The contents of a store, and when it follows the host. */
export interface PendingStoreOptions {
  /** Selects suspensions. */
  filter?: PendingFilter;
  /** Whether to follow the host while the page is hidden, for example to count in the title. This keeps a connection open. */
  whileHidden?: boolean;
}

/** Whether the store is current. After `failed` it does nothing until it is restarted. */
export type PendingStatus =
  | { state: "idle" | "loading" | "live" }
  | {
      state: "away";
      /** Why the stream broke, if the host said so. The store tries again. */
      error: ToolgateError | undefined;
    }
  | {
      state: "failed";
      /** Why the host refuses the store. */
      error: ToolgateError;
    };

/** A change of a store. After `listed`, the whole list was read again. */
export type PendingChange =
  | { type: "listed" }
  | {
      type: "opened" | "changed";
      /** The suspension as it is now. */
      suspension: Suspension;
    }
  | {
      type: "closed";
      /** The id of the suspension. */
      id: string;
      /** Its last known state. */
      last: Suspension | undefined;
      /** How it ended. Absent if it no longer matches the filter, or if its end is unknown. */
      closed: PendingClosed | undefined;
    }
  | {
      type: "status";
      /** Whether the store is current. */
      status: PendingStatus;
    };

interface Listed {
  listed: Map<string, Suspension>;
  unreadable: UnreadableSuspension[];
}

/** The most suspensions that are read one by one after a gap, to learn how they ended. */
const ASKED_FOR = 50;

/** The open suspensions, kept up to date while somebody listens. */
export class PendingStore {
  /** Which suspensions it holds. */
  readonly filter: PendingFilter;
  readonly #toolgate: Source;
  readonly #whileHidden: boolean;
  readonly #listeners = new Set<(change: PendingChange) => void>();
  #open = new Map<string, Suspension>();
  #unreadable: UnreadableSuspension[] = [];
  #status: PendingStatus = { state: "idle" };
  #running: AbortController | undefined;
  /** Events that arrived while a list was read. They are newer than the list. */
  #reported: Map<string, Suspension | PendingClosed> | undefined;
  #listing: AbortController | undefined;
  /** Suspensions that left the list and whose end was not reported yet. */
  readonly #gone = new Map<string, Suspension>();

  /** Makes a store that does not follow the host yet. `toolgate` is a client: `toolgate.pendingStore(options)` does the same. */
  constructor(toolgate: Source, options: PendingStoreOptions = {}) {
    this.#toolgate = toolgate;
    this.filter = options.filter ?? {};
    this.#whileHidden = options.whileHidden ?? false;
  }

  /** Whether the store is current. */
  get status(): PendingStatus {
    return this.#status;
  }

  /** The open suspensions, oldest first. */
  get all(): Suspension[] {
    return [...this.#open.values()];
  }

  /** The suspensions that the last list left out, because a stored record is damaged. Nobody can answer them. */
  get unreadable(): readonly UnreadableSuspension[] {
    return this.#unreadable;
  }

  /** The open suspension with this id. */
  get(id: string): Suspension | undefined {
    return this.#open.get(id);
  }

  /**
   * Calls the listener with every change from now on. The store follows the host while it has listeners. The returned function
   * unsubscribes.
   */
  subscribe(listener: (change: PendingChange) => void): () => void {
    // Each call is a separate subscription, even with the same function.
    const own = (change: PendingChange) => listener(change);
    this.#listeners.add(own);
    if (this.#running === undefined) this.#start();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  /** Follows the host again after a failure, for example with another token. */
  restart(): void {
    this.#stop();
    if (this.#listeners.size > 0) this.#start();
  }

  #start(): void {
    const running = new AbortController();
    this.#running = running;
    this.#setStatus({ state: "loading" });
    this.#follow(running.signal).catch((error: unknown) => {
      if (this.#running !== running) return;
      this.#running = undefined;
      this.#listing?.abort();
      this.#setStatus({ state: "failed", error: asError(error) });
    });
  }

  #stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#listing?.abort();
    this.#status = { state: "idle" };
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const onStatus = (status: StreamStatus) => {
      // The list goes stale, and is read again when the page is visible.
      if (status.state === "hidden") this.#setStatus({ state: "loading" });
      if (status.state === "waiting") this.#setStatus({ state: "away", error: status.error });
    };
    const options = { signal, onStatus, whileHidden: this.#whileHidden };
    const stream = follow(this.#toolgate.connection, "/v1/pending/events", options);
    for await (const message of stream) {
      switch (message.event) {
        case "pending.ready":
        case "pending.reset":
          this.#list(signal);
          break;
        case "pending.opened":
        case "pending.changed":
          this.#report(JSON.parse(message.data) as Suspension);
          break;
        case "pending.closed":
          this.#end(JSON.parse(message.data) as PendingClosed);
          break;
      }
    }
  }

  /** Reads the whole list in the background, while the stream continues. */
  #list(signal: AbortSignal): void {
    this.#listing?.abort();
    const listing = new AbortController();
    this.#listing = listing;
    const reported = new Map<string, Suspension | PendingClosed>();
    this.#reported = reported;
    signal.addEventListener("abort", () => listing.abort(), { once: true, signal: listing.signal });
    this.#pages(listing.signal)
      .then(({ listed, unreadable }) => {
        if (listing.signal.aborted) return;
        this.#reported = undefined;
        this.#unreadable = unreadable;
        this.#take(listed, reported, signal);
      })
      .catch((error: unknown) => {
        if (listing.signal.aborted) return;
        const failed = asError(error);
        if (!failed.isTransient) {
          this.#stop();
          this.#setStatus({ state: "failed", error: failed });
          return;
        }
        this.#setStatus({ state: "away", error: failed });
        const again = () => listing.signal.aborted || this.#list(signal);
        this.#toolgate.clock.after(failed.retryAfter ?? 2000, again);
      });
  }

  async #pages(signal: AbortSignal): Promise<Listed> {
    const listed = new Map<string, Suspension>();
    const unreadable: UnreadableSuspension[] = [];
    let after: string | undefined;
    do {
      const page = await this.#toolgate.pending({ ...this.filter, ...(after && { after }) }, signal);
      for (const suspension of page.suspensions) listed.set(suspension.suspension, suspension);
      unreadable.push(...(page.unreadable ?? []));
      after = page.next ?? undefined;
    } while (after !== undefined);
    return { listed, unreadable };
  }

  /** Replaces the known suspensions with a list, updated by the events since the request. */
  #take(
    listed: Map<string, Suspension>,
    reported: Map<string, Suspension | PendingClosed>,
    signal: AbortSignal,
  ): void {
    for (const [id, last] of reported) {
      if (isOpen(last)) {
        if (this.#fits(last)) listed.set(id, last);
        else listed.delete(id);
      } else {
        listed.delete(id);
      }
    }
    for (const [id, last] of this.#open) this.#gone.set(id, last);
    for (const id of listed.keys()) this.#gone.delete(id);
    this.#open = listed;
    this.#setStatus({ state: "live" });
    this.#emit({ type: "listed" });
    [...this.#gone.values()].forEach((last, index) => {
      const end = reported.get(last.suspension);
      if (end !== undefined && !isOpen(end)) this.#ended(last, end);
      else if (index < ASKED_FOR) void this.#howEnded(last, signal);
      else this.#ended(last, undefined);
    });
  }

  /** Asks how a suspension ended during a gap. */
  async #howEnded(last: Suspension, signal: AbortSignal): Promise<void> {
    const now = await this.#toolgate.suspension(last.suspension, signal).catch(() => undefined);
    // A restarted store asks again, and nothing is reported twice.
    if (signal.aborted || !this.#gone.has(last.suspension)) return;
    this.#ended(last, now && endOf(now));
  }

  #report(suspension: Suspension): void {
    const id = suspension.suspension;
    this.#reported?.set(id, suspension);
    const last = this.#open.get(id);
    if (!this.#fits(suspension)) {
      if (last !== undefined && this.#open.delete(id)) this.#ended(suspension, undefined);
      return;
    }
    this.#open.set(id, suspension);
    this.#gone.delete(id);
    this.#emit({ type: last === undefined ? "opened" : "changed", suspension });
  }

  #end(closed: PendingClosed): void {
    this.#reported?.set(closed.suspension, closed);
    const last = this.#open.get(closed.suspension);
    this.#open.delete(closed.suspension);
    this.#gone.delete(closed.suspension);
    // Reported even if unknown here: a card may show it.
    this.#emit({ type: "closed", id: closed.suspension, last, closed });
  }

  #ended(last: Suspension, closed: PendingClosed | undefined): void {
    this.#gone.delete(last.suspension);
    this.#emit({ type: "closed", id: last.suspension, last, closed });
  }

  #fits(suspension: Suspension): boolean {
    const { conversation, caller, tool, kind, call, mine } = this.filter;
    return (
      (conversation === undefined || ofCaller(conversation) === ofCaller(suspension.conversation)) &&
      (caller === undefined || caller === suspension.caller) &&
      (tool === undefined || tool === suspension.tool) &&
      (kind === undefined || kind === suspension.kind) &&
      (call === undefined || call === suspension.call) &&
      (mine !== true || suspension.you?.may_answer !== false)
    );
  }

  #setStatus(status: PendingStatus): void {
    this.#status = status;
    this.#emit({ type: "status", status });
  }

  #emit(change: PendingChange): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(change);
      } catch (error) {
        // An error in one listener must not stop the others. The page's console shows it.
        globalThis.reportError?.(error);
      }
    }
  }
}

/** How a suspension ended, in the form of the stream's event. */
export function endOf(suspension: Suspension): PendingClosed | undefined {
  const { closed, conversation } = suspension;
  if (closed === null || closed === undefined) return undefined;
  return {
    suspension: suspension.suspension,
    conversation,
    state: closed.state,
    by: closed.by,
    ...(closed.approvers && { approvers: closed.approvers }),
    via: closed.via ?? null,
    at: closed.at,
    edited: closed.arguments != null,
  };
}

function isOpen(last: Suspension | PendingClosed): last is Suspension {
  return "kind" in last;
}

function asError(error: unknown): ToolgateError {
  if (error instanceof ToolgateError) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new ToolgateError("unreachable", 0, detail, [], undefined, { cause: error });
}

/** The conversation of the caller, also of a nested turn. */
function ofCaller(conversation: string): string {
  return conversation.replace(/^~/, "");
}
