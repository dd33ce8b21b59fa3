/**
 * The base of all cards. It loads the suspension, follows its changes, decides when the card takes an answer, and shows how the
 * suspension ended.
 */
import type { Toolgate } from "../client.js";
import { endOf, type PendingChange, type PendingStore } from "../pending-store.js";
import { ToolgateError } from "../problem.js";
import { line, names } from "../text.js";
import { isSeen } from "../visibility.js";
import type { Answer, Answered, PendingClosed, Suspension } from "../wire.js";
import { lacksApproved } from "./arguments.js";
import { make, say } from "./dom.js";
import { through } from "./people.js";
import { type Sheet, sheets } from "./styles.js";
import { upgrade } from "./upgrade.js";

/** The detail of `toolgate-answered`. */
export interface AnsweredDetail {
  /** The answered suspension, as the card showed it. */
  suspension: Suspension;
  /** The decision that the card sent. */
  decision: string;
  /** The host's response. */
  answered: Answered;
}

/** The detail of `toolgate-closed`. */
export interface ClosedDetail {
  /** The suspension that ended. */
  suspension: Suspension;
  /** How it ended. */
  closed: PendingClosed;
}

/**
 * Milliseconds after a card appeared or moved in which it takes no answer. Nobody can have read it, and the click or key was
 * meant for something else.
 */
const GUARD = 500;
const MOVED = "This card has just appeared or changed. Read it again before you answer.";
/** Milliseconds between reads of the suspension where the host refuses a stream, as it does for one-time links. */
const POLL = 3000;

/** The properties and methods that all cards have. */
export abstract class Card extends HTMLElement {
  static observedAttributes = ["suspension-id"];

  protected readonly root: ShadowRoot;
  protected readonly status = make("p", { part: "status", attributes: { role: "status" } });
  protected readonly problem = make("p", { part: "error", attributes: { role: "alert" } });
  /** The page removed this card but may show it again, so the card keeps the user's input. */
  isKept = false;
  protected closed: PendingClosed | undefined;
  protected sending = false;
  #toolgate: Toolgate | undefined;
  #store: PendingStore | undefined;
  #suspension: Suspension | undefined;
  #leave: (() => void) | undefined;
  #tick: (() => void) | undefined;
  #unguard: (() => void) | undefined;
  /** Why the card takes no answer at the moment; empty if the card already shows why. */
  #guarded: string | undefined;
  #isBegun = false;
  #waiting = new AbortController();

  constructor(...names: Sheet[]) {
    super();
    this.root = this.attachShadow({ mode: "open", delegatesFocus: false });
    this.root.adoptedStyleSheets = sheets("base", "card", ...names);
    this.root.addEventListener("input", () => {
      this.#isBegun = true;
    });
  }

  /** The client that sends answers. */
  get toolgate(): Toolgate | undefined {
    return this.#toolgate;
  }
  set toolgate(toolgate: Toolgate | undefined) {
    this.#toolgate = toolgate;
    this.#reconnect();
  }

  /** The source of changes. Without one, the card follows the host itself. */
  get store(): PendingStore | undefined {
    return this.#store;
  }
  set store(store: PendingStore | undefined) {
    this.#store = store;
    this.#reconnect();
  }

  /** The suspension. The attribute `suspension-id` can name it instead. */
  get suspension(): Suspension | undefined {
    return this.#suspension;
  }
  set suspension(suspension: Suspension | undefined) {
    const isOther = suspension?.suspension !== this.#suspension?.suspension;
    this.#suspension = suspension;
    if (isOther) {
      this.closed = undefined;
      this.sending = false;
      this.#isBegun = false;
      this.#guarded = undefined;
      say(this.problem, "");
      say(this.status, "");
      if (suspension === undefined) this.root.replaceChildren();
      else this.build(suspension);
      this.guard();
      this.#reconnect();
    }
    if (suspension !== undefined) this.#take(suspension);
  }

  connectedCallback(): void {
    upgrade(this, "toolgate", "store", "suspension");
    this.guard();
    this.#reconnect();
  }

  disconnectedCallback(): void {
    this.#disconnect();
  }

  attributeChangedCallback(_name: string, before: string | null, after: string | null): void {
    if (before !== after) this.#reconnect();
  }

  /** Refuses answers for a moment, and shows why. Called when the card appears or is moved. */
  guard(why = MOVED): void {
    const clock = this.#toolgate?.clock;
    if (clock === undefined) return;
    this.#unguard?.();
    // A user who has just answered knows why the card changes.
    if (this.#guarded !== "") this.#guarded = why;
    this.#unguard = clock.after(GUARD, () => {
      this.#guarded = undefined;
      this.#refresh();
    });
    // Last, because it can detect a move and guard again.
    this.#refresh();
  }

  /** The name of the tool for people. */
  get label(): string {
    const { title, tool } = this.#suspension ?? {};
    return line(title ?? tool ?? "");
  }

  /** Focuses the whole card, where its keys work. */
  override focus(options?: FocusOptions): void {
    const article = this.root.querySelector("article");
    if (article === null) super.focus(options);
    else article.focus(options);
  }

  /** Whether Tab stops at the whole card. */
  set isStop(isStop: boolean) {
    this.root.querySelector("article")?.setAttribute("tabindex", isStop ? "0" : "-1");
  }

  /** Shows an error that happened elsewhere, such as in a batch. */
  complain(message: string): void {
    if (this.closed === undefined) say(this.problem, message);
  }

  /** Whether the card has input that was not sent. */
  get isBegun(): boolean {
    return this.#isBegun && this.closed === undefined;
  }

  /** Whether the card takes an answer now. */
  get isReady(): boolean {
    return this.isOpen && this.#guarded === undefined && !this.sending;
  }

  protected get isOpen(): boolean {
    const suspension = this.#suspension;
    return suspension !== undefined && this.closed === undefined && suspension.you?.may_answer !== false;
  }

  /** Builds the card for a new suspension. */
  protected abstract build(suspension: Suspension): void;
  /** Updates the parts that can change. */
  protected abstract update(suspension: Suspension): void;
  /** Called once a second. */
  protected tick(_suspension: Suspension, _now: number): void {}
  /** Shows the host's errors at their fields. Returns the text of the errors without a field. */
  protected place(error: ToolgateError): string {
    return error.detail;
  }

  /** Whether the card refuses an answer now. If it does, it shows why. */
  protected refuses(): boolean {
    if (this.isReady) return false;
    if (this.isOpen && !this.sending && this.#guarded) say(this.problem, this.#guarded);
    return true;
  }

  /** Sends an answer that is bound to the shown call. Returns whether the host accepted it. */
  protected send(answer: Answer): Promise<boolean> {
    return this.ask(
      (toolgate, { suspension, digest }) =>
        toolgate.resolve(suspension, { ...answer, expect_digest: digest }),
      (answered, suspension) => this.#answered(suspension, answer, answered),
    );
  }

  /**
   * Sends one request about the shown suspension. Returns whether the host accepted it. `taken` is called if the card still shows
   * the same suspension.
   */
  protected async ask<T>(
    request: (toolgate: Toolgate, suspension: Suspension) => Promise<T>,
    taken: (answer: T, suspension: Suspension) => void,
  ): Promise<boolean> {
    const suspension = this.#suspension;
    const toolgate = this.#toolgate;
    if (suspension === undefined || toolgate === undefined || this.refuses()) return false;
    this.sending = true;
    say(this.problem, "");
    say(this.status, "Sending …");
    this.#refresh();
    const isShown = () => this.#suspension?.suspension === suspension.suspension;
    try {
      const answer = await request(toolgate, suspension);
      if (!isShown()) return true;
      this.sending = false;
      taken(answer, suspension);
      // The second press of a double click must not answer again.
      this.guard("");
      return true;
    } catch (error) {
      if (isShown()) this.#failed(suspension, error);
      return false;
    }
  }

  #answered(suspension: Suspension, { decision, arguments: edit }: Answer, answered: Answered): void {
    this.#tell<AnsweredDetail>("toolgate-answered", { suspension, decision, answered });
    if (this.closed !== undefined) return;
    if (answered.state === "open") {
      const missing = answered.votes_missing ?? 0;
      say(this.status, `Your approval is recorded. ${missing} more ${missing === 1 ? "is" : "are"} needed.`);
    } else {
      const edited = edit !== undefined;
      this.#end({ ...ended(suspension), state: answered.state ?? decision, by: "", edited });
    }
  }

  #failed(suspension: Suspension, thrown: unknown): void {
    this.sending = false;
    const error =
      thrown instanceof ToolgateError ? thrown : new ToolgateError("unreachable", 0, String(thrown), []);
    if (error.code === "stale") {
      const { state, by, at } = error.problem ?? {};
      const how = { state: state ?? "unknown", by: by ?? "", at: at ?? "" };
      this.#end({ ...ended(suspension), ...how });
      // A refusal does not say whether a link answered.
      if (!lacksApproved(suspension, this.closed)) void this.#readAgain(suspension.suspension);
      return;
    }
    // The event of the end can arrive before the refusal. It has already named the accepted answer.
    if (this.closed !== undefined) return;
    say(this.status, "");
    say(this.problem, this.place(error));
    this.#refresh();
  }

  #take(suspension: Suspension): void {
    const end = endOf(suspension);
    if (end !== undefined) this.#end(end);
    this.#refresh();
  }

  #end(closed: PendingClosed): void {
    const suspension = this.#suspension;
    if (suspension === undefined) return;
    const isNews = this.closed === undefined;
    // After an answer of this card, the name of the approver arrives later than the end. After a refused answer, the rest does.
    const isMore =
      this.closed?.by === "" ||
      (this.closed?.via == null && closed.via != null) ||
      (this.closed?.edited === undefined && closed.edited !== undefined);
    if (!isNews && !isMore) return;
    this.closed = closed;
    this.sending = false;
    // No more events follow, and a browser has few connections.
    if (this.#isKnown) this.#unfollow();
    say(this.problem, "");
    say(this.status, ending(closed));
    this.#refresh();
    this.#tick?.();
    if (isNews && lacksApproved(suspension, closed)) void this.#loadApproved(suspension.suspension);
    if (isNews) this.#tell<ClosedDetail>("toolgate-closed", { suspension, closed });
  }

  #refresh(): void {
    const suspension = this.#suspension;
    if (suspension === undefined) return;
    this.root.querySelector("article")?.classList.toggle("ended", this.closed !== undefined);
    this.toggleAttribute("closed", this.closed !== undefined);
    this.update(suspension);
    const { clock } = this.#toolgate ?? {};
    if (clock !== undefined) this.tick(suspension, clock.now());
  }

  #tell<Detail>(name: string, detail: Detail): void {
    this.dispatchEvent(new CustomEvent<Detail>(name, { detail, bubbles: true, composed: true }));
  }

  #reconnect(): void {
    this.#disconnect();
    const toolgate = this.#toolgate;
    if (!this.isConnected || toolgate === undefined) return;
    this.#waiting = new AbortController();
    const { signal } = this.#waiting;
    this.#beat();
    const id = this.getAttribute("suspension-id");
    if (this.#suspension === undefined) {
      if (id === null) return;
      toolgate.suspension(id, signal).then(
        (suspension) => {
          if (!signal.aborted) this.suspension = suspension;
        },
        (error: unknown) => {
          if (!signal.aborted) this.#absent(error);
        },
      );
      return;
    }
    if (this.#unguard === undefined) this.guard();
    const { conversation, suspension } = this.#suspension;
    if (lacksApproved(this.#suspension, this.closed)) void this.#loadApproved(suspension);
    if (this.#isKnown) return;
    const store = this.#store ?? toolgate.pendingStore({ filter: { conversation } });
    this.#leave = store.subscribe((change) => this.#hear(change, store));
    // A store that is already live does not repeat earlier changes.
    if (store.status.state === "live") this.#hear({ type: "listed" }, store);
  }

  /** Whether the end and its author are known. */
  get #isKnown(): boolean {
    const { closed } = this;
    return closed !== undefined && (closed.by !== "" || closed.state === "unknown");
  }

  #unfollow(): void {
    this.#leave?.();
    this.#leave = undefined;
  }

  #disconnect(): void {
    this.#waiting.abort();
    this.#unfollow();
    this.#tick?.();
    this.#tick = undefined;
  }

  #beat(): void {
    const { clock } = this.#toolgate ?? {};
    this.#tick = clock?.after(1000, () => {
      if (this.closed !== undefined) return;
      if (this.#suspension !== undefined && clock !== undefined) this.tick(this.#suspension, clock.now());
      this.#beat();
    });
  }

  #hear(change: PendingChange, store: PendingStore): void {
    const id = this.#suspension?.suspension;
    if (change.type === "listed" && id !== undefined && this.closed === undefined) {
      const now = store.get(id);
      // The list has missed changes. A suspension that is not in it has ended, or does not match the store's filter.
      if (now !== undefined) this.suspension = now;
      else void this.#readAgain(id);
      return;
    }
    if (change.type === "closed" && change.id === id) {
      if (change.closed !== undefined) this.#end(change.closed);
      else if (change.last !== undefined) this.suspension = change.last;
    } else if (
      (change.type === "changed" || change.type === "opened") &&
      change.suspension.suspension === id
    ) {
      this.suspension = change.suspension;
    } else if (change.type === "status" && change.status.state === "failed" && this.#store === undefined) {
      this.#poll(this.#waiting.signal);
    }
  }

  #poll(signal: AbortSignal): void {
    this.#toolgate?.clock.after(POLL, () => {
      const id = this.#suspension?.suspension;
      if (signal.aborted || this.closed !== undefined || id === undefined) return;
      const read = isSeen() ? this.#readAgain(id) : Promise.resolve();
      void read.then(() => signal.aborted || this.#poll(signal));
    });
  }

  /** Reads the suspension again; returns why that failed, if it did. */
  async #readAgain(id: string): Promise<ToolgateError | undefined> {
    const { signal } = this.#waiting;
    try {
      const now = await this.#toolgate?.suspension(id, signal);
      if (now !== undefined && !signal.aborted && this.#suspension?.suspension === id) this.suspension = now;
      return undefined;
    } catch (error) {
      return error instanceof ToolgateError ? error : undefined;
    }
  }

  /** Loads the approved arguments, which the event of the end does not carry. */
  async #loadApproved(id: string): Promise<void> {
    const { signal } = this.#waiting;
    const error = await this.#readAgain(id);
    if (error === undefined || signal.aborted) return;
    if (error.isTransient)
      this.#toolgate?.clock.after(error.retryAfter ?? POLL, () => void this.#loadApproved(id));
    else say(this.problem, `The approved arguments cannot be loaded: ${error.detail}`);
  }

  #absent(error: unknown): void {
    const detail = error instanceof ToolgateError ? error.detail : String(error);
    say(this.problem, `This question cannot be shown: ${detail}`);
    this.root.replaceChildren(make("article", { part: "card" }, this.problem));
  }
}

function ended({ suspension, conversation }: Suspension): PendingClosed {
  return { suspension, conversation, state: "", by: "", at: "" };
}

const ENDINGS: Record<string, string> = {
  approve: "Approved",
  deny: "Denied",
  answer: "Answered",
  result: "Carried out",
  error: "Failed",
};

/** A sentence that says how the suspension ended, and by whom. */
function ending({ state, by, approvers, via, edited }: PendingClosed): string {
  if (state === "expired") return "Expired: nobody answered in time.";
  if (state === "withdrawn") return "Withdrawn: the call has ended.";
  if (state === "unknown") return "This question no longer exists.";
  const how = ENDINGS[state] ?? `Answered “${line(state)}”`;
  const edit = edited ? ", with edited arguments" : "";
  return by === ""
    ? `${how}${edit}.`
    : `${how} by ${names(approvers?.length ? approvers : [by])}${through(via)}${edit}.`;
}
