/**
 * What the cards of approvals and questions have in common: where their suspension comes from, how they keep up with it, when
 * they take an answer, and how they say that it is over.
 */
import type { Toolgate } from "../client.js";
import { endOf, type PendingChange, type PendingStore } from "../pending-store.js";
import { ToolgateError } from "../problem.js";
import { line } from "../text.js";
import { isSeen } from "../visibility.js";
import type { Answer, Answered, PendingClosed, Suspension } from "../wire.js";
import { make, say } from "./dom.js";
import { through } from "./people.js";
import { type Sheet, sheets } from "./styles.js";
import { upgrade } from "./upgrade.js";

/** What `toolgate-answered` tells. */
export interface AnsweredDetail {
  suspension: Suspension;
  decision: string;
  answered: Answered;
}

/** What `toolgate-closed` tells. */
export interface ClosedDetail {
  suspension: Suspension;
  closed: PendingClosed;
}

/**
 * For so long after it appeared or moved, a card takes no answer: nobody can have read it, and what the click or key was
 * meant for was somewhere else a moment ago.
 */
const GUARD = 500;
const MOVED = "This has just appeared or changed. Look at it again, and then answer.";
/** Where a stream of what waits is refused, as to one-time links, the suspension is read anew so often. */
const POLL = 3000;

export abstract class Card extends HTMLElement {
  static observedAttributes = ["suspension-id"];

  protected readonly root: ShadowRoot;
  protected readonly status = make("p", { part: "status", attributes: { role: "status" } });
  protected readonly problem = make("p", { part: "error", attributes: { role: "alert" } });
  /** Whoever took this card off the page may put it back, with what was entered: it stays as it is meanwhile. */
  isKept = false;
  protected closed: PendingClosed | undefined;
  protected sending = false;
  #toolgate: Toolgate | undefined;
  #store: PendingStore | undefined;
  #suspension: Suspension | undefined;
  #leave: (() => void) | undefined;
  #tick: (() => void) | undefined;
  #unguard: (() => void) | undefined;
  /** Why no answer is taken for a moment, if so; empty where the card says enough already. */
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

  /** The client to answer with. */
  get toolgate(): Toolgate | undefined {
    return this.#toolgate;
  }
  set toolgate(toolgate: Toolgate | undefined) {
    this.#toolgate = toolgate;
    this.#reconnect();
  }

  /** Where news comes from; without one, the card follows the host by itself. */
  get store(): PendingStore | undefined {
    return this.#store;
  }
  set store(store: PendingStore | undefined) {
    this.#store = store;
    this.#reconnect();
  }

  /** What is asked. Instead of it, the attribute `suspension-id` can name it. */
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

  /** Takes no answer for a moment, and says why to whoever tries: called when the card appears, and by whoever moves it. */
  guard(why = MOVED): void {
    const clock = this.#toolgate?.clock;
    if (clock === undefined) return;
    this.#unguard?.();
    // Who has just answered knows why the card changes.
    if (this.#guarded !== "") this.#guarded = why;
    this.#unguard = clock.after(GUARD, () => {
      this.#guarded = undefined;
      this.#refresh();
    });
    // Comes last: it can find that something moved, and guard anew.
    this.#refresh();
  }

  /** A name for what is asked about. */
  get label(): string {
    const { title, tool } = this.#suspension ?? {};
    return line(title ?? tool ?? "");
  }

  /** Puts the focus on the card as a whole, from where its keys work. */
  override focus(options?: FocusOptions): void {
    const article = this.root.querySelector("article");
    if (article === null) super.focus(options);
    else article.focus(options);
  }

  /** Whether Tab stops at the card as a whole. */
  set isStop(isStop: boolean) {
    this.root.querySelector("article")?.setAttribute("tabindex", isStop ? "0" : "-1");
  }

  /** Says on the card what went wrong with it elsewhere, in a batch for instance. */
  complain(message: string): void {
    if (this.closed === undefined) say(this.problem, message);
  }

  /** Whether somebody has entered something that was not sent. */
  get isBegun(): boolean {
    return this.#isBegun && this.closed === undefined;
  }

  /** Whether an answer would be taken now. */
  get isReady(): boolean {
    return this.isOpen && this.#guarded === undefined && !this.sending;
  }

  protected get isOpen(): boolean {
    const suspension = this.#suspension;
    return suspension !== undefined && this.closed === undefined && suspension.you?.may_answer !== false;
  }

  /** Makes everything for a suspension that was not shown before. */
  protected abstract build(suspension: Suspension): void;
  /** Brings up to date what can change while it is shown. */
  protected abstract update(suspension: Suspension): void;
  /** Once a second. */
  protected tick(_suspension: Suspension, _now: number): void {}
  /** Puts what the host found wrong where it is wrong, as far as there is a place; returns what has none. */
  protected place(error: ToolgateError): string {
    return error.detail;
  }

  /** Whether an answer would be refused now. Then the card says why, unless it does so already. */
  protected refuses(): boolean {
    if (this.isReady) return false;
    if (this.isOpen && !this.sending && this.#guarded) say(this.problem, this.#guarded);
    return true;
  }

  /** Sends an answer, bound to what is shown. Says whether it was taken. */
  protected send(answer: Answer): Promise<boolean> {
    return this.ask(
      (toolgate, { suspension, digest }) =>
        toolgate.resolve(suspension, { ...answer, expect_digest: digest }),
      (answered, suspension) => this.#answered(suspension, answer.decision, answered),
    );
  }

  /**
   * Asks the host for what somebody wants of what is shown, one thing at a time. Says whether it was taken; `taken` hears so if
   * the same is shown still.
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
      // The second press of a double click is not to be another answer.
      this.guard("");
      return true;
    } catch (error) {
      if (isShown()) this.#failed(suspension, error);
      return false;
    }
  }

  #answered(suspension: Suspension, decision: string, answered: Answered): void {
    this.#tell<AnsweredDetail>("toolgate-answered", { suspension, decision, answered });
    if (this.closed !== undefined) return;
    if (answered.state === "open") {
      const missing = answered.votes_missing ?? 0;
      say(this.status, `Your approval is recorded. ${missing} more ${missing === 1 ? "is" : "are"} needed.`);
    } else {
      this.#end({ ...ended(suspension), state: answered.state ?? decision, by: "" });
    }
  }

  #failed(suspension: Suspension, thrown: unknown): void {
    this.sending = false;
    const error =
      thrown instanceof ToolgateError ? thrown : new ToolgateError("unreachable", 0, String(thrown), []);
    if (error.code === "stale") {
      const { state, by, at } = error.problem ?? {};
      const told = { state: state ?? "unknown", by: by ?? "", at: at ?? "" };
      this.#end({ ...ended(suspension), ...told });
      // Whether a link answered, a refusal does not say.
      void this.#readAnew(suspension.suspension);
      return;
    }
    // The news that it is over can be faster than the refusal of an answer. Then it has said whose answer stands.
    if (this.closed !== undefined) return;
    say(this.status, "");
    say(this.problem, this.place(error));
    this.#refresh();
  }

  #take(suspension: Suspension): void {
    const end = endOf(suspension);
    if (end !== undefined) this.#end(end);
    else this.#refresh();
  }

  #end(closed: PendingClosed): void {
    const suspension = this.#suspension;
    if (suspension === undefined) return;
    const isNews = this.closed === undefined;
    // Who it was is known later than that it is over, where this card itself has answered; and whether by a link, where its
    // answer was refused.
    const isMore = this.closed?.by === "" || (this.closed?.via == null && closed.via != null);
    if (!isNews && !isMore) return;
    this.closed = closed;
    this.sending = false;
    // Nothing comes after it, and a browser has few connections.
    if (this.#isKnown) this.#unfollow();
    say(this.problem, "");
    say(this.status, ending(closed));
    this.#refresh();
    this.#tick?.();
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
    const { conversation } = this.#suspension;
    if (this.#isKnown) return;
    const store = this.#store ?? toolgate.pendingStore({ filter: { conversation } });
    this.#leave = store.subscribe((change) => this.#hear(change, store));
    // One that is up to date already tells nothing of what happened before.
    if (store.status.state === "live") this.#hear({ type: "listed" }, store);
  }

  /** Whether it is known that it is over, and by whom. */
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
      // What changed while nobody listened is in the list. What is not there ended before, or is not what the store asks for.
      if (now !== undefined) this.suspension = now;
      else void this.#readAnew(id);
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
      const read = isSeen() ? this.#readAnew(id) : Promise.resolve();
      void read.then(() => signal.aborted || this.#poll(signal));
    });
  }

  async #readAnew(id: string): Promise<void> {
    const { signal } = this.#waiting;
    const now = await this.#toolgate?.suspension(id, signal).catch(() => undefined);
    if (now !== undefined && !signal.aborted && this.#suspension?.suspension === id) this.suspension = now;
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

/** How it ended and by whom, in a sentence. */
function ending({ state, by, via }: PendingClosed): string {
  if (state === "expired") return "Expired: nobody answered in time.";
  if (state === "withdrawn") return "Withdrawn: the call has ended.";
  if (state === "unknown") return "No longer there.";
  const how = ENDINGS[state] ?? `Answered “${line(state)}”`;
  return by === "" ? `${how}.` : `${how} by ${line(by)}${through(via)}.`;
}
