/**
 * What waits, kept up to date: subscribed first, then listed, so that nothing falls between the two. Whatever a stream
 * missed is found by listing again, and what had ended meanwhile is told as ended.
 */
import type { Toolgate } from "./client.js";
import { ToolgateError } from "./problem.js";
import { follow, type StreamStatus } from "./stream.js";
import type { PendingClosed, PendingFilter, Suspension } from "./wire.js";

export interface PendingStoreOptions {
  /** Only these. */
  filter?: PendingFilter;
  /** Whether it goes on while nobody sees the page: for whoever counts in the title, for instance. It costs a connection. */
  whileHidden?: boolean;
}

/** How current the store is. After `failed`, nothing changes any more until it is started again. */
export type PendingStatus =
  | { state: "idle" | "loading" | "live" }
  | { state: "away"; error: ToolgateError | undefined }
  | { state: "failed"; error: ToolgateError };

export type PendingChange =
  /** Everything may have changed. */
  | { type: "listed" }
  | { type: "opened" | "changed"; suspension: Suspension }
  /** It ended, known before (`last`) or not; or it is no longer among those asked for, and then `closed` is absent. */
  | { type: "closed"; id: string; last: Suspension | undefined; closed: PendingClosed | undefined }
  | { type: "status"; status: PendingStatus };

/** How many of those that ended while nobody listened are asked for one by one. */
const ASKED_FOR = 50;

export class PendingStore {
  readonly filter: PendingFilter;
  readonly #toolgate: Toolgate;
  readonly #whileHidden: boolean;
  readonly #listeners = new Set<(change: PendingChange) => void>();
  #open = new Map<string, Suspension>();
  #status: PendingStatus = { state: "idle" };
  #running: AbortController | undefined;
  /** What the stream said while a list was under way: that counts for more than the list. */
  #told: Map<string, Suspension | PendingClosed> | undefined;
  #listing: AbortController | undefined;
  /** Of what is gone, that of which nobody was told yet how it ended. */
  readonly #gone = new Map<string, Suspension>();

  constructor(toolgate: Toolgate, options: PendingStoreOptions = {}) {
    this.#toolgate = toolgate;
    this.filter = options.filter ?? {};
    this.#whileHidden = options.whileHidden ?? false;
  }

  get status(): PendingStatus {
    return this.#status;
  }

  /** Those that wait, oldest first. */
  get all(): Suspension[] {
    return [...this.#open.values()];
  }

  get(id: string): Suspension | undefined {
    return this.#open.get(id);
  }

  /**
   * Is told of every change from now on. The store follows the host while anybody listens; the returned function ends it.
   */
  subscribe(listener: (change: PendingChange) => void): () => void {
    // Each call is its own subscription, even of the same function.
    const own = (change: PendingChange) => listener(change);
    this.#listeners.add(own);
    if (this.#running === undefined) this.#start();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  /** Follows again after a failure: with another token, for instance. */
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
      // What is known grows old, and is listed again when somebody sees the page.
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
          this.#tell(JSON.parse(message.data) as Suspension);
          break;
        case "pending.closed":
          this.#end(JSON.parse(message.data) as PendingClosed);
          break;
      }
    }
  }

  /** Lists everything anew, in the background: the stream is read on meanwhile. */
  #list(signal: AbortSignal): void {
    this.#listing?.abort();
    const listing = new AbortController();
    this.#listing = listing;
    const told = new Map<string, Suspension | PendingClosed>();
    this.#told = told;
    signal.addEventListener("abort", () => listing.abort(), { once: true, signal: listing.signal });
    this.#pages(listing.signal)
      .then((listed) => {
        if (listing.signal.aborted) return;
        this.#told = undefined;
        this.#take(listed, told, signal);
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

  async #pages(signal: AbortSignal): Promise<Map<string, Suspension>> {
    const listed = new Map<string, Suspension>();
    let after: string | undefined;
    do {
      const page = await this.#toolgate.pending({ ...this.filter, ...(after && { after }) }, signal);
      for (const suspension of page.suspensions) listed.set(suspension.suspension, suspension);
      after = page.next ?? undefined;
    } while (after !== undefined);
    return listed;
  }

  /** Puts a list in the place of what was known, corrected by what the stream said since it was asked for. */
  #take(
    listed: Map<string, Suspension>,
    told: Map<string, Suspension | PendingClosed>,
    signal: AbortSignal,
  ): void {
    for (const [id, last] of told) {
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
      const end = told.get(last.suspension);
      if (end !== undefined && !isOpen(end)) this.#ended(last, end);
      else if (index < ASKED_FOR) void this.#howEnded(last, signal);
      else this.#ended(last, undefined);
    });
  }

  /** Asks how something ended that ended while nobody listened. */
  async #howEnded(last: Suspension, signal: AbortSignal): Promise<void> {
    const now = await this.#toolgate.suspension(last.suspension, signal).catch(() => undefined);
    // Who follows anew asks again, and what was told meanwhile is not told twice.
    if (signal.aborted || !this.#gone.has(last.suspension)) return;
    this.#ended(last, now && endOf(now));
  }

  #tell(suspension: Suspension): void {
    const id = suspension.suspension;
    this.#told?.set(id, suspension);
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
    this.#told?.set(closed.suspension, closed);
    const last = this.#open.get(closed.suspension);
    this.#open.delete(closed.suspension);
    this.#gone.delete(closed.suspension);
    // Told even if it was not known here: a card may have it from elsewhere.
    this.#emit({ type: "closed", id: closed.suspension, last, closed });
  }

  #ended(last: Suspension, closed: PendingClosed | undefined): void {
    this.#gone.delete(last.suspension);
    this.#emit({ type: "closed", id: last.suspension, last, closed });
  }

  #fits(suspension: Suspension): boolean {
    const { conversation, caller, tool, kind, mine } = this.filter;
    return (
      (conversation === undefined || conversation === suspension.conversation) &&
      (caller === undefined || caller === suspension.caller) &&
      (tool === undefined || tool === suspension.tool) &&
      (kind === undefined || kind === suspension.kind) &&
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
        // One listener's mistake is not to keep the others from the news; the page's console has it.
        globalThis.reportError?.(error);
      }
    }
  }
}

/** How a suspension ended, as the stream would have told it. */
export function endOf(suspension: Suspension): PendingClosed | undefined {
  const { closed, conversation } = suspension;
  if (closed === null || closed === undefined) return undefined;
  return {
    suspension: suspension.suspension,
    conversation,
    state: closed.state,
    by: closed.by,
    via: closed.via ?? null,
    at: closed.at,
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
