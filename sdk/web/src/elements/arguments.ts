/**
 * The arguments of an approval in every state: as submitted while it is open, and beside the approved ones once somebody approved.
 */
import { pretty } from "../json-text.js";
import { json } from "../text.js";
import type { PendingClosed, Suspension } from "../wire.js";
import { fill, make } from "./dom.js";
import {
  argumentsText,
  beside,
  block,
  complete,
  defaultsOf,
  EDITED_BEFORE,
  SUBMITTED,
  submittedText,
} from "./sections.js";

/** A part of a card that changes with the state of the approval. */
export class Section {
  readonly element: HTMLElement;
  #shown = "";

  constructor(part: string) {
    this.element = make("section", { part, attributes: { hidden: "" } });
  }

  /** Shows these elements. Without a change the old ones stay, so that no selection is lost. */
  show(made: HTMLElement[]): void {
    const shown = made.map(({ outerHTML }) => outerHTML).join("");
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.element.hidden = made.length === 0;
    fill(this.element, ...made);
  }
}

/** Whether it is an approval that somebody gave. A question can have a choice named `approve`. */
function isApproved<C extends { state: string }>(
  { kind }: Suspension,
  closed: C | null | undefined,
): closed is C {
  return kind === "approval" && closed?.state === "approve";
}

/** Whether an approver may have changed the arguments, and the suspension does not say yet to what. */
export function lacksApproved(suspension: Suspension, closed: PendingClosed | undefined): boolean {
  return (
    isApproved(suspension, closed) &&
    closed.edited !== false &&
    suspension.closed == null &&
    suspension.editable !== "none"
  );
}

/** The approved arguments as text, where an approver edited them. */
export function approvedEdit(suspension: Suspension): string | undefined {
  const { closed, display } = suspension;
  if (!isApproved(suspension, closed) || closed.arguments == null) return undefined;
  const text = pretty(display?.approved_arguments ?? json(closed.arguments));
  return text === argumentsText(suspension) ? undefined : text;
}

/** The schema's defaults that apply to the arguments that the card shows: to the approved edit, once there is one. */
export function appliedDefaults(suspension: Suspension, ended: PendingClosed | undefined): HTMLElement[] {
  const { closed, display, defaults: given } = suspension;
  if (lacksApproved(suspension, ended)) return [];
  if (approvedEdit(suspension) !== undefined) {
    const shown = display?.approved_defaults;
    return defaultsOf("the approved arguments leave out", shown, closed?.defaults, closed?.defaults_unknown);
  }
  const what = isAsSubmitted(suspension) ? "the arguments as submitted leave out" : "the arguments leave out";
  return defaultsOf(what, display?.defaults, given);
}

/** Whether somebody has approved other arguments, so that those of the suspension need a name. */
function isAsSubmitted({ votes }: Suspension): boolean {
  return votes?.some((vote) => vote.arguments !== undefined || vote.display != null) === true;
}

/** The arguments of an approval. `closed` says how it ended, if it did. */
export function approvedArguments(suspension: Suspension, closed: PendingClosed | undefined): HTMLElement[] {
  const text = argumentsText(suspension);
  const submitted = submittedText(suspension);
  // An earlier approval of the call may have edited what this one asks about.
  const asked = (label: string) => [
    ...block(submitted === undefined ? label : EDITED_BEFORE, text, suspension.arguments_digest),
    ...(submitted === undefined ? [] : beside(submitted, text)),
  ];
  if (closed === undefined) {
    const what = suspension.step == null ? "Arguments" : "Value to decide about";
    return asked(isAsSubmitted(suspension) ? SUBMITTED : complete(text, what));
  }
  if (!isApproved(suspension, closed)) return asked(SUBMITTED);
  if (lacksApproved(suspension, closed))
    return [...asked(SUBMITTED), make("p", { class: "muted" }, "Loading the approved arguments …")];
  const edit = approvedEdit(suspension);
  if (edit === undefined && submitted === undefined) return asked("Approved arguments, as submitted");
  const digest = edit === undefined ? suspension.arguments_digest : suspension.closed?.arguments_digest;
  return [
    make("div", { part: "approved" }, ...block("Approved arguments", edit ?? text, digest)),
    ...(submitted === undefined
      ? beside(text, edit ?? text, suspension.arguments_digest)
      : beside(submitted, edit ?? text)),
  ];
}
