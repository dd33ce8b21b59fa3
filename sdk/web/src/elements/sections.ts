/** The parts of a card. Each function makes elements from a suspension. */
import { members, pretty } from "../json-text.js";
import { clockTime, json, line, lines, names, span } from "../text.js";
import type { StepSummary, Suspension } from "../wire.js";
import { changes } from "./changes.js";
import { freshId, make } from "./dom.js";

/** The tool, the caller and the risk. The id is for `aria-labelledby`. */
export function header(
  suspension: Suspension,
  level: number,
  what: string,
): { id: string; element: HTMLElement } {
  const id = freshId();
  const { title, tool, plugin, caller, parent, risk, display } = suspension;
  const name = display?.title ?? line(title ?? tool);
  const from = [
    name === line(tool) ? undefined : `tool ${line(tool)}`,
    plugin === null || plugin === undefined ? undefined : `plugin ${line(plugin)}`,
    suspension.sandboxed === false ? "runs outside the sandbox" : undefined,
    `asked for by ${line(caller)}`,
    parent == null
      ? undefined
      : `called by ${line(parent.tool)} of the plugin ${line(parent.plugin)}, which chose the arguments`,
  ];
  const element = make(
    "header",
    { part: "header" },
    make(
      "div",
      { part: "title", attributes: { role: "heading", "aria-level": String(level), id } },
      make("span", { class: "unseen" }, `${what}: `),
      name,
    ),
    make("span", { class: "from" }, from.filter((text) => text !== undefined).join(" · ")),
    risk !== null &&
      risk !== undefined &&
      make("span", { part: "risk", class: `badge risk-${risk}` }, `${risk} risk`),
  );
  return { id, element };
}

/** Why the call needs a person. */
export function reason({
  reason,
  asked_by,
  in_doubt_attempt,
  requests_in_doubt,
  step,
  display,
}: Suspension): HTMLElement | undefined {
  if (typeof step === "number") {
    const begun = `Step ${step} of a call that has begun. The plugin wrote this question. The host cannot know whether later effects match the answer.`;
    return make("p", { part: "reason" }, begun);
  }
  const asker = asked_by === null || asked_by === undefined ? "" : ` (rule ${line(asked_by)})`;
  if (typeof in_doubt_attempt === "number") {
    const doubt = `The host was killed while attempt ${in_doubt_attempt} ran. The call may have taken effect. Approving runs it again.`;
    return make("p", { part: "reason" }, doubt);
  }
  if (requests_in_doubt?.length) {
    const doubt =
      "The host was killed while the call sent requests. They may have been carried out. Decide about each, or deny to end the call in doubt.";
    return make("p", { part: "reason" }, doubt);
  }
  if (reason === null || reason === undefined) {
    return asker === "" ? undefined : make("p", { part: "reason" }, `A rule asks for this approval${asker}.`);
  }
  return make(
    "p",
    { part: "reason" },
    make("strong", {}, "Why: "),
    `${display?.reason ?? lines(reason)}${asker}`,
  );
}

const STEPS: Record<string, string> = {
  approval: "Approval",
  elicitation: "Question",
  timer: "Sleep",
  external: "External wait",
  rate_limit: "Rate limit",
  children: "Nested turn",
};

/** The steps of the call before this one. */
export function earlier({ earlier: steps, step }: Suspension): HTMLElement | undefined {
  const last = steps?.at(-1);
  if (steps == null || last === undefined) return undefined;
  const hasAll = steps[0]?.step === 1;
  return make(
    "section",
    { part: "earlier" },
    make(
      "div",
      { class: "label" },
      hasAll ? "Earlier steps of this call" : `The last ${steps.length} of ${(step ?? 1) - 1} earlier steps`,
    ),
    make("ul", {}, ...steps.map((each) => make("li", { attributes: { dir: "auto" } }, stepText(each)))),
  );
}

/** A step on one line. The host has escaped the prompt. */
function stepText({ step, kind, prompt, state, by, approvers, since, at }: StepSummary): string {
  const asked = prompt == null ? "" : ` “${prompt}”`;
  const who = approvers?.length ? names(approvers) : line(by ?? "");
  const isOver = kind === "timer" && state === "expired";
  const end =
    at == null
      ? `${line(state)} since ${clockTime(since)}`
      : `${isOver ? "over" : `${line(state)} by ${who}`}, ${clockTime(at)}`;
  return `${step}. ${STEPS[kind] ?? line(kind)}${asked}: ${end}`;
}

/** The prompt and its author. */
export function prompt(suspension: Suspension): HTMLElement | undefined {
  const text =
    suspension.display?.prompt ?? (suspension.prompt == null ? undefined : lines(suspension.prompt));
  if (text === undefined || text === null) return undefined;
  return make(
    "figure",
    { part: "prompt" },
    make("figcaption", {}, promptBy(suspension)),
    make("blockquote", { attributes: { dir: "auto" } }, text),
  );
}

/** The author of the prompt. */
export function promptBy({ prompt_by }: Suspension): string {
  return prompt_by === "host" ? "The host asks" : "In the plugin’s words";
}

/** The arguments at the moment of asking, complete, with one member a line. */
export function argumentsText(suspension: Suspension): string {
  return pretty(suspension.display?.arguments ?? json(suspension.arguments));
}

/** The arguments of a question or a client's call. */
export function argumentsOf(suspension: Suspension): HTMLElement {
  const text = argumentsText(suspension);
  const submitted = submittedText(suspension);
  const label = submitted === undefined ? complete(text, "Arguments") : EDITED_BEFORE;
  return make(
    "section",
    { part: "arguments" },
    ...block(label, text, suspension.arguments_digest),
    ...(submitted === undefined ? [] : beside(submitted, text)),
  );
}

/** The label of arguments that an approver edited before the suspension was opened. */
export const EDITED_BEFORE = "Arguments, as an approver edited them before";
/** The label of the submitted arguments. */
export const SUBMITTED = "Arguments as submitted";

/** The submitted arguments as text, where an approver edited them before the suspension was opened. */
export function submittedText({ submitted, display }: Suspension): string | undefined {
  return submitted == null ? undefined : pretty(display?.submitted ?? json(submitted));
}

/** The changes of an edit, and the submitted arguments. */
export function beside(submitted: string, approved: string, digest?: string | null): HTMLElement[] {
  const label = "Changes by the approver";
  return [
    make("div", { class: "label" }, label),
    make("ol", { part: "diff", attributes: { "aria-label": label } }, ...changes(submitted, approved)),
    make("div", { part: "submitted" }, ...block(SUBMITTED, submitted, digest)),
  ];
}

/** The arguments of a question, such as its choices, as text and lists. A text that the prompt quotes is left out. */
export function facts(suspension: Suspension): HTMLElement | undefined {
  const { display, arguments: given, prompt: asked } = suspension;
  const rows = (members(display?.arguments ?? json(given)) ?? []).flatMap(({ name, text }) => {
    const value: unknown = JSON.parse(text);
    const isQuoted = typeof value === "string" && (asked ?? "").includes(value);
    return value === null || isQuoted ? [] : [{ name, value, text }];
  });
  if (rows.length === 0) return undefined;
  return make(
    "section",
    { part: "facts", class: "fields" },
    ...rows.map(({ name, value, text }) =>
      make("div", {}, make("div", { class: "label" }, line(name)), fact(value, text)),
    ),
  );
}

function fact(value: unknown, text: string): HTMLElement {
  if (typeof value === "string")
    return make("div", { class: "text", attributes: { dir: "auto" } }, lines(value));
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  if (!isList) return make("pre", { part: "json", attributes: { dir: "ltr" } }, pretty(text));
  const items = value.map((item) => make("li", { attributes: { dir: "auto" } }, lines(item)));
  return make("ul", {}, ...items);
}

/** A label that says that a text is complete. */
export function complete(text: string, what: string): string {
  const count = text.split("\n").length;
  return count > 40 ? `${what}, all ${count} lines` : `${what}, complete`;
}

/** A JSON text with its label, and the digest of the exact arguments. */
export function block(label: string, text: string, digest: string | null | undefined): HTMLElement[] {
  const made = [
    make("div", { class: "label" }, label),
    make("pre", { part: "json", attributes: { dir: "ltr" } }, text),
  ];
  if (digest != null)
    made.push(
      make("p", { part: "digest", class: "digest exact" }, `Digest of the arguments: ${line(digest)}`),
    );
  return made;
}

/** The schema's defaults for the arguments of a question. They are no part of the arguments. */
export function defaults({ display, defaults: given }: Suspension): HTMLElement | undefined {
  const shown = defaultsOf("the arguments leave out", display?.defaults, given);
  return shown.length === 0 ? undefined : make("section", { part: "defaults" }, ...shown);
}

/** The schema's defaults for what some arguments leave out, or that nobody knows them; empty if none apply. */
export function defaultsOf(
  what: string,
  shown: string | null | undefined,
  given?: unknown,
  unknown?: boolean | null,
): HTMLElement[] {
  if (unknown) {
    const why = `Nobody knows the tool’s defaults for what ${what}: the component of the call is no longer loaded.`;
    return [make("p", { class: "muted" }, why)];
  }
  const text = shown ?? (given == null ? undefined : json(given));
  return text === undefined ? [] : block(`The tool’s defaults, for what ${what}`, pretty(text), null);
}

/** The context from the caller. */
export function context(suspension: Suspension): HTMLElement | undefined {
  const { display, context } = suspension;
  const text = display?.context ?? (context == null ? undefined : json(context));
  if (text === undefined || text === null || text === "{}") return undefined;
  return make(
    "section",
    { part: "context" },
    make("div", { class: "label" }, "Context, from the caller"),
    make("pre", { part: "json", attributes: { dir: "ltr" } }, pretty(text)),
  );
}

/** When the suspension expires, and the consequence. */
export function expiry(suspension: Suspension, now: number): string {
  const left = Date.parse(suspension.expires_at) - now;
  const then = outcome(suspension);
  const at = clockTime(suspension.expires_at);
  if (left <= 0) return `Expired at ${at}: ${then}.`;
  return `Open for ${span(left)}, until ${at}; then ${then}.`;
}

function outcome({ on_expiry, kind }: Suspension): string {
  if (on_expiry === "deny") return "the call is denied";
  if (on_expiry === "approve") return "the call is approved";
  if (on_expiry === "continue") return "the call continues without an answer";
  if (typeof on_expiry === "object") return `the answer is ${json(on_expiry.answer)}`;
  return kind === "approval" ? "the call ends without running" : "the call ends without an answer";
}
