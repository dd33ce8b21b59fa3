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
  EDITED_BEFORE,
  SUBMITTED,
  submittedText,
} from "./sections.js";

export class ArgumentsView {
  readonly element = make("section", { part: "arguments" });
  #shown = "";

  /** Shows the arguments. `closed` says how the approval ended, if it did. */
  show(suspension: Suspension, closed: PendingClosed | undefined): void {
    const made = parts(suspension, closed);
    const shown = made.map(({ outerHTML }) => outerHTML).join("");
    if (shown === this.#shown) return;
    this.#shown = shown;
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

function parts(suspension: Suspension, closed: PendingClosed | undefined): HTMLElement[] {
  const text = argumentsText(suspension);
  const submitted = submittedText(suspension);
  // An earlier approval of the call may have edited what this one asks about.
  const asked = (label: string) => [
    ...block(submitted === undefined ? label : EDITED_BEFORE, text, suspension.arguments_digest),
    ...(submitted === undefined ? [] : beside(submitted, text)),
  ];
  if (closed === undefined) {
    const isEdited = suspension.votes?.some((vote) => vote.arguments !== undefined || vote.display != null);
    const what = suspension.step == null ? "Arguments" : "Value to decide about";
    return asked(isEdited ? SUBMITTED : complete(text, what));
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
