/**
 * Who has to approve, who has, and what they made of the arguments. Votes count together only for the very same arguments, so
 * what another approver edited is shown as a change, with a button that approves exactly that.
 */
import { pretty } from "../json-text.js";
import { clockTime, json, line, who } from "../text.js";
import type { Need, Suspension, Vote } from "../wire.js";
import { changes } from "./changes.js";
import { fill, freshId, make, say } from "./dom.js";
import { argumentsText } from "./sections.js";

/** An edit that somebody approved: its binding, and the JSON text that is shown and sent. */
interface Edit {
  binding: string;
  text: string;
}

interface Join {
  edit: Edit;
  button: HTMLButtonElement;
  why: HTMLElement;
}

export class People {
  readonly element = make("section", { part: "people" });
  readonly #join: ((binding: string) => void) | undefined;
  #shown = "";
  #joins: Join[] = [];

  /** `join` approves an edit; without it, edits are told and not offered. */
  constructor(join?: (binding: string) => void) {
    this.#join = join;
  }

  /**
   * Brings everything up to date. Says whether anything was made anew: then what is below it has moved. Buttons stay the same
   * elements as long as nothing changes, so that neither a press nor the focus is lost.
   */
  show(suspension: Suspension): boolean {
    const { suspension: id, needs, votes, delegations } = suspension;
    const shown = JSON.stringify([id, needs, votes, delegations]);
    if (shown === this.#shown) return false;
    this.#shown = shown;
    this.#joins = [];
    const items = [
      ...(needs ?? []).map((one) => make("li", {}, need(one))),
      ...this.#votes(suspension),
      ...(delegations ?? []).map(({ from, to, via, comment }) =>
        make("li", {}, `${line(from)}${through(via)} handed their say to ${line(to)}${quoted(comment)}`),
      ),
    ];
    this.element.hidden = items.length === 0;
    const note = make(
      "p",
      { class: "muted" },
      "Approvals count together only where the arguments are the same.",
    );
    fill(
      this.element,
      make("div", { class: "label" }, "Who approves"),
      make("ul", {}, ...items),
      this.#joins.length > 0 && note,
    );
    return true;
  }

  /** Whether edits can be joined now: not at all where it is over, and not yet where `isReady` is false. */
  allow(suspension: Suspension, isOver: boolean, isReady: boolean): void {
    for (const { edit, button, why } of this.#joins) {
      const reason = whyNot(suspension, edit);
      button.hidden = isOver;
      why.hidden = isOver || reason === "";
      say(why, reason);
      button.setAttribute("aria-disabled", String(!isReady || reason !== ""));
    }
  }

  /** The arguments that the votes with this binding approve, if they were edited. */
  textOf(binding: string): string | undefined {
    return this.#joins.find(({ edit }) => edit.binding === binding)?.edit.text;
  }

  #votes(suspension: Suspension): HTMLLIElement[] {
    const first = new Map<string, string>();
    return (suspension.votes ?? []).map((vote) => {
      const { by, via, binding, comment } = vote;
      const of = first.get(binding);
      const isEdit = hasEdit(vote);
      if (of === undefined) first.set(binding, line(by));
      const what = !isEdit
        ? ""
        : of === undefined
          ? ", with edited arguments"
          : `, with the same edit as ${of}`;
      const told = `${line(by)}${through(via)} approved${what}${quoted(comment)}`;
      return make(
        "li",
        {},
        told,
        isEdit && of === undefined && this.#join !== undefined && this.#offer(suspension, vote),
      );
    });
  }

  /** What an edit changes, and the way to approve it as well. */
  #offer(suspension: Suspension, vote: Vote): HTMLElement {
    const text = vote.display ?? json(vote.arguments);
    const edit = { binding: vote.binding, text };
    const name = line(vote.by);
    const items = changes(argumentsText(suspension), pretty(text));
    const why = make("p", { class: "muted", attributes: { id: freshId() } });
    const button = make(
      "button",
      { part: "join", attributes: { type: "button", "aria-describedby": why.id } },
      `Approve as ${name} edited`,
    );
    button.addEventListener("click", () => this.#join?.(edit.binding));
    this.#joins.push({ edit, button, why });
    return make(
      "div",
      { part: "edit-of", class: "fields" },
      make(
        "ol",
        { part: "diff", attributes: { "aria-label": `What the edit of ${name} changes` } },
        ...items,
      ),
      make("div", { class: "row" }, button, why),
    );
  }
}

/** Why this principal cannot approve an edit, or nothing. */
function whyNot({ you, editable }: Suspension, { binding }: Edit): string {
  if (you?.may_answer === false) return line(you.why_not ?? "You may not answer this.");
  if (editable === "none") return "The arguments of this call may not be edited.";
  const isMine = you?.voted === true && you.binding === binding && !you.counts_again;
  return isMine ? "You have approved this edit." : "";
}

function hasEdit({ arguments: edited, display }: Vote): boolean {
  return edited !== undefined || (display !== undefined && display !== null);
}

/** How somebody came who did not log in. */
export function through(via: string | null | undefined): string {
  return via == null ? "" : ` (by a ${line(via)})`;
}

function quoted(comment: string | null | undefined): string {
  return comment == null || comment === "" ? "" : `: “${line(comment)}”`;
}

function need({ who: names, quorum, votes, escalates_at, escalated, escalates_to }: Need): string {
  const people = names.length === 0 ? "any approver" : names.map(who).join(", ");
  const others = (escalates_to ?? []).map(who).join(", ");
  const later = escalates_at == null || escalated ? "" : `; from ${clockTime(escalates_at)} also ${others}`;
  const now = escalated && others !== "" ? `; by now also ${others}` : "";
  return `${votes} of ${quorum} from ${people}${later}${now}`;
}
