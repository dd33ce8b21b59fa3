/**
 * The required approvers, their votes and their edits. Votes count together only for the same arguments, so another approver's edit
 * is shown as changes, with a button that approves exactly this edit.
 */
import { pretty } from "../json-text.js";
import { clockTime, json, line, who } from "../text.js";
import type { Need, Suspension, Vote } from "../wire.js";
import { changes } from "./changes.js";
import { fill, freshId, make, say } from "./dom.js";
import { argumentsText, defaultsOf } from "./sections.js";

/** An approved edit: its binding, and the JSON text that is shown and sent. */
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

  /** `join` approves an edit. Without it, edits are shown but cannot be approved. */
  constructor(join?: (binding: string) => void) {
    this.#join = join;
  }

  /**
   * Updates the section. Returns whether it was rebuilt, which moves the parts below it. Without a change the buttons stay the same
   * elements, so that no press and no focus is lost.
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
        make("li", {}, `${line(from)}${through(via)} delegated to ${line(to)}${quoted(comment)}`),
      ),
    ];
    this.element.hidden = items.length === 0;
    const note = make("p", { class: "muted" }, "Only approvals of the same arguments are added up.");
    fill(
      this.element,
      make("div", { class: "label" }, "Who approves"),
      make("ul", {}, ...items),
      this.#joins.length > 0 && note,
    );
    return true;
  }

  /** Enables or disables the buttons that approve an edit: hidden once closed, disabled until `isReady`. */
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
      const sentence = `${line(by)}${through(via)} approved${what}${quoted(comment)}`;
      return make(
        "li",
        {},
        sentence,
        isEdit && of === undefined && this.#join !== undefined && this.#offer(suspension, vote),
      );
    });
  }

  /** The changes of an edit, and a button that approves it. */
  #offer(suspension: Suspension, vote: Vote): HTMLElement {
    const text = vote.display ?? json(vote.arguments);
    const edit = { binding: vote.binding, text };
    const name = line(vote.by);
    const items = changes(argumentsText(suspension), pretty(text));
    const { defaults: given, defaults_display, defaults_unknown } = vote;
    const defaults = defaultsOf("this edit leaves out", defaults_display, given, defaults_unknown);
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
      make("ol", { part: "diff", attributes: { "aria-label": `Changes by ${name}` } }, ...items),
      defaults.length > 0 && make("div", { part: "edit-defaults" }, ...defaults),
      make("div", { class: "row" }, button, why),
    );
  }
}

/** Why this principal cannot approve an edit; empty if they can. */
function whyNot({ you, editable }: Suspension, { binding }: Edit): string {
  if (you?.may_answer === false) return line(you.why_not ?? "You may not answer this.");
  if (editable === "none") return "The arguments of this call may not be edited.";
  const isMine = you?.voted === true && you.binding === binding && !you.counts_again;
  return isMine ? "You have approved this edit." : "";
}

function hasEdit({ arguments: edited, display }: Vote): boolean {
  return edited !== undefined || (display !== undefined && display !== null);
}

/** Says which channel was used, if it is not one of the usual two. */
export function through(via: string | null | undefined): string {
  if (via == null || via === "console" || via === "api") return "";
  return via === "mcp-form" ? " (in a form of an MCP client)" : ` (by a ${line(via)})`;
}

function quoted(comment: string | null | undefined): string {
  return comment == null || comment === "" ? "" : `: “${line(comment)}”`;
}

function need({ who: names, quorum, votes, escalates_at, escalated, escalates_to, via }: Need): string {
  const people = names.length === 0 ? "any approver" : names.map(who).join(", ");
  const others = (escalates_to ?? []).map(who).join(", ");
  const later = escalates_at == null || escalated ? "" : `; from ${clockTime(escalates_at)} also ${others}`;
  const now = escalated && others !== "" ? `; now also ${others}` : "";
  const channels = via?.length ? `; must be answered through: ${via.map(line).join(", ")}` : "";
  return `${votes} of ${quorum} from ${people}${later}${now}${channels}`;
}
