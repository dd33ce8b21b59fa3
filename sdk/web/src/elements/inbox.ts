/**
 * `<toolgate-inbox>`: all open suspensions as live cards. A card that was answered elsewhere shows by whom, and disappears after a
 * moment. Nothing moves under the pointer, and a card that has moved takes no answer for a moment.
 */
import type { Toolgate } from "../client.js";
import { type PendingChange, type PendingStatus, PendingStore } from "../pending-store.js";
import { ToolgateError } from "../problem.js";
import type { BatchAnswered, Kind, PendingFilter, Suspension } from "../wire.js";
import { ToolgateApproval } from "./approval.js";
import type { Card } from "./card.js";
import { ToolgateClientCall } from "./client-call.js";
import { fill, make, say } from "./dom.js";
import { ToolgateElicitation } from "./elicitation.js";
import { sheets } from "./styles.js";
import { upgrade } from "./upgrade.js";

interface Item {
  suspension: Suspension;
  card: Card;
  element: HTMLLIElement;
  pick: HTMLInputElement | undefined;
  isOver: boolean;
}

/** The detail of `toolgate-counts`. */
export interface CountsDetail {
  /** The open suspensions of the inbox. */
  open: number;
  /** Their numbers by kind. */
  by_kind: Record<Kind, number>;
}

/** Cards on the first page, and cards that each press of “more” adds. */
const PAGE = 50;
/** Milliseconds for which a closed card is still shown. */
const LINGER = 4000;
/** The most answers in one request. */
const BATCH = 100;
/** Elements that take text, so that letter keys are no shortcuts in them. */
const WRITES = "input:not([type=checkbox], [type=radio]), textarea, select";

/** The element `<toolgate-inbox>`: all open suspensions as live cards. */
export class ToolgateInbox extends HTMLElement {
  static observedAttributes = ["conversation", "tool", "kind", "caller", "call", "mine"];

  readonly #root: ShadowRoot;
  readonly #counts = make("p", { part: "counts", attributes: { role: "status" } });
  readonly #notice = make("p", { part: "notice", attributes: { role: "alert" } });
  readonly #unreadable = make("p", { part: "unreadable", attributes: { role: "status" } });
  readonly #empty = make("p", { part: "empty" });
  readonly #list = make("ul", { part: "list", attributes: { role: "list" } });
  readonly #batch = make("div", { class: "row" });
  readonly #all = make("input", { attributes: { type: "checkbox", id: "all" } });
  readonly #allText = document.createTextNode("");
  readonly #allLabel = make("label", { class: "choice", attributes: { for: "all" } });
  readonly #approve = make("button", { part: "batch", class: "good", attributes: { type: "button" } });
  readonly #deny = make("button", { part: "batch", class: "bad", attributes: { type: "button" } });
  readonly #more = make("button", { part: "more", attributes: { type: "button" } });
  readonly #items = new Map<string, Item>();
  #toolgate: Toolgate | undefined;
  #drafts = new Map<string, Card>();
  #given: PendingStore | undefined;
  #store: PendingStore | undefined;
  #leave: (() => void) | undefined;
  #shown = PAGE;
  #isPointed = false;
  #isSending = false;

  constructor() {
    super();
    this.#root = this.attachShadow({ mode: "open" });
    this.#root.adoptedStyleSheets = sheets("base", "inbox");
    fill(this.#allLabel, this.#all);
    this.#allLabel.append(this.#allText);
    fill(this.#batch, this.#allLabel, this.#approve, this.#deny);
    const bar = make("div", { part: "bar" }, this.#counts, make("span", { class: "grow" }), this.#batch);
    this.#root.append(bar, this.#notice, this.#unreadable, this.#list, this.#more, this.#empty);
    this.#all.addEventListener("change", () => this.#selectAll());
    this.#approve.addEventListener("click", () => void this.answerSelected("approve"));
    this.#deny.addEventListener("click", () => void this.answerSelected("deny"));
    this.#more.addEventListener("click", () => this.#showMore());
    this.#list.addEventListener("pointerenter", () => {
      this.#isPointed = true;
    });
    this.#list.addEventListener("pointerleave", () => {
      this.#isPointed = false;
    });
    this.addEventListener("keydown", (event) => this.#key(event));
    this.addEventListener("focusin", () => this.#rove());
  }

  /** The client of the host whose suspensions it shows. */
  get toolgate(): Toolgate | undefined {
    return this.#toolgate;
  }
  set toolgate(toolgate: Toolgate | undefined) {
    this.#toolgate = toolgate;
    this.#connect();
  }

  /** A store to show instead of the element's own. The filter attributes then have no effect. */
  get store(): PendingStore | undefined {
    return this.#given ?? this.#store;
  }
  set store(store: PendingStore | undefined) {
    this.#given = store;
    this.#connect();
  }

  /**
   * Cards with input that was not sent, by suspension. They come back unchanged with their filter. If the page supplies the map, they
   * also outlive this element. The map belongs to one principal: the page must drop it when another logs in.
   */
  get drafts(): Map<string, Card> {
    return this.#drafts;
  }
  set drafts(drafts: Map<string, Card>) {
    this.#drafts = drafts;
  }

  connectedCallback(): void {
    upgrade(this, "toolgate", "drafts", "store");
    this.#connect();
  }

  disconnectedCallback(): void {
    this.#leave?.();
    this.#leave = undefined;
    this.#keepDrafts();
  }

  attributeChangedCallback(_name: string, before: string | null, after: string | null): void {
    if (before !== after) this.#connect();
  }

  /** The selected suspensions, in order. */
  get selected(): Suspension[] {
    return this.#ordered()
      .filter(({ pick, isOver }) => pick?.checked === true && !isOver)
      .map(({ suspension }) => suspension);
  }

  /** Focuses the next or the previous card. */
  move(by: 1 | -1): void {
    const items = this.#ordered();
    const at = items.findIndex(({ element }) => element === this.#focused());
    const next =
      items[at === -1 ? (by === 1 ? 0 : items.length - 1) : Math.min(Math.max(at + by, 0), items.length - 1)];
    next?.card.focus();
  }

  /** Answers all selected cards. Each answer succeeds or fails on its own, and its card shows a failure. */
  async answerSelected(decision: "approve" | "deny"): Promise<void> {
    const toolgate = this.#toolgate;
    const ready: Item[] = [];
    for (const item of this.#selectedItems()) {
      const why = leftOut(item.card, decision);
      if (why === undefined) ready.push(item);
      else item.card.complain(`Skipped: ${why}`);
    }
    if (toolgate === undefined || ready.length === 0 || this.#isSending) return;
    this.#isSending = true;
    this.#refresh();
    let [taken, waiting] = [0, 0];
    try {
      for (let at = 0; at < ready.length; at += BATCH) {
        const part = ready.slice(at, at + BATCH);
        const answers = part.map(({ card, suspension: { suspension, digest } }) => ({
          suspension,
          decision,
          expect_digest: digest,
          ...(card instanceof ToolgateApproval && card.comment),
        }));
        const answered = await toolgate.resolveAll(answers);
        taken += this.#report(answered);
        waiting += answered.filter(({ ok }) => ok?.state === "open").length;
      }
      const rest = ready.length - taken;
      const more = waiting === 0 ? "" : ` (${waiting} still ${waiting === 1 ? "needs" : "need"} others)`;
      const done = `${taken} ${decision === "approve" ? "approved" : "denied"}${more}`;
      this.#tell(rest === 0 ? `${done}.` : `${done}, ${rest} not: see the cards.`, rest === 0);
    } catch (error) {
      this.#tell(error instanceof ToolgateError ? error.detail : String(error));
    } finally {
      this.#isSending = false;
      this.#refresh();
    }
  }

  /** Shows the result of each answer. Returns the number of accepted answers. */
  #report(answers: BatchAnswered[]): number {
    let taken = 0;
    for (const answer of answers) {
      const item = this.#items.get(answer.suspension);
      if (item?.pick !== undefined) item.pick.checked = false;
      const { problem } = answer;
      if (problem !== undefined && problem !== null) {
        // A card that ended meanwhile shows that when the event arrives.
        if (problem.code !== "stale") item?.card.complain(problem.detail);
      } else taken += 1;
    }
    return taken;
  }

  #connect(): void {
    this.#leave?.();
    this.#leave = undefined;
    if (!this.isConnected || this.#toolgate === undefined) return;
    this.#store = this.#given ?? new PendingStore(this.#toolgate, { filter: this.#filter() });
    this.#keepDrafts();
    for (const item of this.#items.values()) item.element.remove();
    this.#items.clear();
    this.#shown = PAGE;
    this.#leave = this.#store.subscribe((change) => this.#hear(change));
    this.#addMissing();
    this.#tellStatus(this.#store.status);
  }

  #filter(): PendingFilter {
    const filter: PendingFilter = {};
    for (const name of ["conversation", "tool", "caller", "call"] as const) {
      const value = this.getAttribute(name);
      if (value !== null && value !== "") filter[name] = value;
    }
    const kind = this.getAttribute("kind");
    if (kind === "approval" || kind === "elicitation" || kind === "client_exec") filter.kind = kind;
    if (this.hasAttribute("mine")) filter.mine = true;
    return filter;
  }

  #hear(change: PendingChange): void {
    switch (change.type) {
      case "listed":
      case "opened":
        this.#addMissing();
        break;
      case "changed": {
        const item = this.#items.get(change.suspension.suspension);
        if (item !== undefined) item.suspension = change.suspension;
        this.#refresh();
        break;
      }
      case "closed":
        this.#over(change.id, change.closed === undefined);
        break;
      case "status":
        this.#tellStatus(change.status);
        break;
    }
  }

  /** Adds the missing cards in the store's order, after the existing ones. */
  #addMissing(): void {
    for (const suspension of this.#store?.all ?? []) {
      const item = this.#items.get(suspension.suspension);
      if (item !== undefined) item.suspension = suspension;
      else if (this.#items.size < this.#shown) this.#add(suspension);
    }
    this.#refresh();
  }

  #keepDrafts(): void {
    for (const { suspension, card, isOver } of this.#items.values()) {
      if (!card.isBegun || isOver || !this.#root.contains(card)) continue;
      card.isKept = true;
      this.#drafts.set(suspension.suspension, card);
    }
  }

  #add(suspension: Suspension): void {
    const draft = this.#drafts.get(suspension.suspension);
    this.#drafts.delete(suspension.suspension);
    const card = draft ?? cardFor(suspension.kind);
    card.isKept = false;
    // A complaint from before no longer applies, such as that the session had ended.
    card.complain("");
    const level = this.getAttribute("heading-level");
    if (level !== null) card.setAttribute("heading-level", level);
    card.toolgate = this.#toolgate;
    card.store = this.#store;
    card.suspension = suspension;
    const pick =
      suspension.kind === "approval" ? make("input", { attributes: { type: "checkbox" } }) : undefined;
    pick?.setAttribute("aria-label", `Select the approval of ${card.label}`);
    pick?.addEventListener("change", () => this.#refresh());
    const element = make(
      "li",
      { part: "item", ...(pick === undefined && { class: "single" }) },
      pick && make("span", { class: "pick" }, pick),
      card,
    );
    this.#items.set(suspension.suspension, { suspension, card, element, pick, isOver: false });
    this.#list.append(element);
  }

  /** Closes a card. It stays for a moment so that people see the result, unless it only left the filter. */
  #over(id: string, isGone: boolean): void {
    this.#drafts.delete(id);
    const item = this.#items.get(id);
    if (item !== undefined) {
      item.isOver = true;
      if (item.pick !== undefined) {
        item.pick.checked = false;
      }
      if (isGone) this.#remove(item);
      else this.#removeLater(item);
    }
    this.#refresh();
  }

  #removeLater(item: Item): void {
    this.#toolgate?.clock.after(Number(this.getAttribute("linger-ms") ?? LINGER), () => {
      if (this.#items.get(item.suspension.suspension) !== item) return;
      // Cards under the pointer do not move. The removal is tried again later.
      if (this.#isPointed) this.#removeLater(item);
      else this.#remove(item);
    });
  }

  #remove(item: Item): void {
    const items = this.#ordered();
    const at = items.indexOf(item);
    const hadFocus = item.element === this.#focused();
    item.element.remove();
    this.#items.delete(item.suspension.suspension);
    const after = items.slice(at + 1);
    for (const { card } of after) card.guard();
    if (hadFocus) (after[0] ?? items[at - 1])?.card.focus();
    this.#addMissing();
  }

  #showMore(): void {
    this.#shown += PAGE;
    this.#addMissing();
  }

  #selectAll(): void {
    for (const { pick, suspension } of this.#items.values()) {
      const isGrave = suspension.risk === "high" || suspension.risk === "critical";
      if (pick?.disabled === false && !isGrave) pick.checked = this.#all.checked;
    }
    this.#refresh();
  }

  #selectedItems(): Item[] {
    return this.#ordered().filter(({ pick, isOver }) => pick?.checked === true && !isOver);
  }

  #refresh(): void {
    const open = this.#store?.all ?? [];
    say(this.#unreadable, damaged(this.#store?.unreadable.length ?? 0));
    const by_kind: Record<Kind, number> = {
      approval: 0,
      elicitation: 0,
      client_exec: 0,
      timer: 0,
      external: 0,
      rate_limit: 0,
      children: 0,
    };
    for (const { kind } of open) by_kind[kind] += 1;
    say(this.#counts, counted(open.length, by_kind));
    // The empty text in place of the cards is visible. Screen readers announce this one.
    this.#counts.classList.toggle("unseen", open.length === 0);
    let pickable = 0;
    for (const { pick, suspension, isOver } of this.#items.values()) {
      if (pick === undefined) continue;
      // A card that the principal may not answer cannot be selected.
      pick.disabled = isOver || suspension.you?.may_answer === false;
      if (pick.disabled) pick.checked = false;
      else pickable += 1;
    }
    const selected = this.#selectedItems().length;
    const isBlocked = selected === 0 || this.#isSending;
    for (const button of [this.#approve, this.#deny]) button.setAttribute("aria-disabled", String(isBlocked));
    const rest = open.filter(({ suspension }) => !this.#items.has(suspension)).length;
    this.#allText.data = `Select all ${rest === 0 ? "" : "shown "}except high risk`;
    say(this.#approve, `Approve selected (${selected})`);
    say(this.#deny, `Deny selected (${selected})`);
    this.#batch.hidden = pickable < 2 && selected === 0;
    if (selected === 0) this.#all.checked = false;
    this.#more.hidden = rest === 0;
    say(this.#more, `Show more (${rest} hidden)`);
    const state = this.#store?.status.state;
    this.#empty.hidden = this.#items.size > 0 || state === "failed";
    say(this.#empty, state === "live" ? "Nothing is waiting for you." : "Loading …");
    this.dispatchEvent(
      new CustomEvent<CountsDetail>("toolgate-counts", { detail: { open: open.length, by_kind } }),
    );
  }

  #tellStatus(status: PendingStatus): void {
    if (status.state === "away") {
      this.#tell("The host does not answer. These cards may be out of date. Trying again …");
    } else if (status.state === "failed") {
      this.#tell(`The pending questions cannot be loaded: ${status.error.detail}`);
    } else if (status.state === "live") this.#tell("");
    this.#refresh();
  }

  /** Shows a notice. An error stays visible while the page scrolls. */
  #tell(notice: string, isGood = false): void {
    this.#notice.className = isGood ? "good" : "";
    say(this.#notice, notice);
  }

  #ordered(): Item[] {
    return [...this.#items.values()];
  }

  /** The item that contains the focus. */
  #focused(): Element | undefined {
    return this.#root.activeElement?.closest("li") ?? undefined;
  }

  /** Tab returns to the card that had the focus last. */
  #rove(): void {
    const focused = this.#focused();
    if (focused === undefined) return;
    for (const { card, element } of this.#items.values()) card.isStop = element === focused;
  }

  #key(event: KeyboardEvent): void {
    const at = event.composedPath()[0];
    const writes = at instanceof Element && at.matches(WRITES);
    if (writes || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "j") this.move(1);
    else if (event.key === "k") this.move(-1);
    else if (event.key === "x") {
      const item = this.#ordered().find(({ element }) => element === this.#focused());
      if (item?.pick?.disabled !== false) return;
      item.pick.checked = !item.pick.checked;
      this.#refresh();
    } else return;
    event.preventDefault();
  }
}

/** Why a batch skips this card, if it does: its input would be lost silently. */
function leftOut(card: Card, decision: "approve" | "deny"): string | undefined {
  if (!(card instanceof ToolgateApproval)) return undefined;
  if (card.isEditing) return "its arguments are being edited.";
  if (decision === "deny") return undefined;
  if (card.decidesRequests) return "each of its requests needs a decision. Approve it on its own.";
  // A batch must not replace a vote for an edit.
  if (card.hasVoted) return "you have approved it already.";
  return card.isStanding ? "it would also approve later calls. Approve it on its own." : undefined;
}

function cardFor(kind: Kind): Card {
  switch (kind) {
    case "approval":
      return new ToolgateApproval();
    case "elicitation":
      return new ToolgateElicitation();
    default:
      return new ToolgateClientCall();
  }
}

/** Says how many suspensions are missing, if any are. */
function damaged(count: number): string {
  if (count === 0) return "";
  const records = `${count} ${count === 1 ? "record" : "records"}`;
  return `${records} cannot be read, because stored data is damaged. Nobody can answer what is missing here; see toolgate store salvage.`;
}

function counted(open: number, kinds: Record<Kind, number>): string {
  const some = (count: number, one: string, more: string) =>
    count === 0 ? [] : [`${count} ${count === 1 ? one : more}`];
  const counts = [
    ...some(kinds.approval, "approval", "approvals"),
    ...some(kinds.elicitation, "question", "questions"),
    ...some(kinds.client_exec, "client call", "client calls"),
  ];
  return open === 0 ? "Nothing is waiting" : `Waiting: ${counts.join(", ")}`;
}
