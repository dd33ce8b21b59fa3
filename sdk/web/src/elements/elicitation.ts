/**
 * `<toolgate-elicitation>`: a question with a form made from the response schema, and a button for each decision. Errors from the
 * host are shown at their fields.
 */
import type { MountedForm } from "../form/mount.js";
import { isStrange, type Schema } from "../form/schema.js";
import { RawJson } from "../json-text.js";
import { parts } from "../pointer.js";
import type { ToolgateError } from "../problem.js";
import { line } from "../text.js";
import type { Answer, Suspension } from "../wire.js";
import { Card } from "./card.js";
import { CommentField } from "./comment.js";
import { fill, freshId, make, say } from "./dom.js";
import { People } from "./people.js";
import {
  argumentsOf,
  context,
  defaults,
  earlier,
  expiry,
  facts,
  header,
  prompt,
  reason,
} from "./sections.js";

/** Decisions that decline. They are sent without the form, and the card says so. */
const DECLINES =
  /^(declined?|cancel|cancell?ed|deny|denied|reject|rejected|no|dismiss|dismissed|skip|skipped)$/i;

/** An invalid value whose errors are already shown. */
const INVALID = Symbol("invalid");

/** The element `<toolgate-elicitation>`: a question with a form. */
export class ToolgateElicitation extends Card {
  #buttons: { decision: string; button: HTMLButtonElement }[] = [];
  #place = make("div", { part: "form", class: "form-root" });
  /** Names the decisions that are sent without the form. */
  #note = make("p", { part: "note", class: "muted" });
  #comment = new CommentField();
  #people = new People();
  #expiry = make("p", { part: "expiry", class: "muted" });
  #actions = make("div", { part: "actions" });
  #form: MountedForm | undefined;
  /** The field that replaces the form: for JSON if there is a schema, otherwise for any text. */
  #text: { input: HTMLTextAreaElement; problem: HTMLElement; isJson: boolean } | undefined;
  #shown = 0;

  constructor() {
    super("form");
    this.addEventListener("keydown", (event) => this.#key(event));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    // A move keeps the form, so that the user's input survives.
    queueMicrotask(() => {
      if (!this.isConnected && !this.isKept) this.#unmount();
    });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const { suspension } = this;
    if (suspension !== undefined && this.#form === undefined && this.#text === undefined)
      void this.#show(suspension);
  }

  /** Answers with one of the allowed decisions, and with the form's value if the decision takes one. */
  async answer(decision: string): Promise<boolean> {
    if (this.refuses()) return false;
    const data = this.#value(decision);
    if (data === INVALID) {
      say(this.problem, "The answer is not valid yet. See the fields.");
      return false;
    }
    const answer: Answer = { decision, ...this.#comment.said };
    if (data !== undefined) answer.data = data;
    return this.send(answer);
  }

  protected build(suspension: Suspension): void {
    this.#unmount();
    const level = Number(this.getAttribute("heading-level") ?? "3");
    const { id, element } = header(suspension, level, "Question");
    this.#buttons = suspension.allowed.map((decision, index) => {
      const isMain = index === 0;
      const isOnly = suspension.allowed.length === 1;
      const button = make(
        "button",
        {
          part: isMain ? "answer answer-main" : "answer",
          class: isMain ? "good" : "",
          attributes: { type: "button" },
        },
        isOnly ? "Answer" : line(decision),
        !isOnly && index < 9 && make("kbd", { attributes: { "aria-hidden": "true" } }, String(index + 1)),
      );
      button.addEventListener("click", () => void this.answer(decision));
      return { decision, button };
    });
    const declines = suspension.allowed.filter((decision) => DECLINES.test(decision));
    this.#note.hidden =
      suspension.response_schema == null || this.#buttons.length < 2 || declines.length === 0;
    const named = declines.map((decision) => `“${line(decision)}”`).join(", ");
    say(this.#note, `These answers ignore the form: ${named}.`);
    this.#comment.clear();
    fill(this.#actions, ...this.#buttons.map(({ button }) => button));
    this.root.replaceChildren(
      make(
        "article",
        { part: "card", attributes: { "aria-labelledby": id, tabindex: "-1" } },
        element,
        reason(suspension),
        earlier(suspension),
        prompt(suspension),
        facts(suspension),
        make(
          "details",
          // Arguments that an approver has edited are shown at once.
          { part: "details", attributes: suspension.submitted == null ? {} : { open: "" } },
          make("summary", {}, "Arguments of the call, as JSON"),
          argumentsOf(suspension),
        ),
        defaults(suspension),
        context(suspension),
        this.#people.element,
        this.#place,
        this.#note,
        this.#comment.element,
        this.#expiry,
        this.#actions,
        this.problem,
        this.status,
      ),
    );
    if (this.isConnected) void this.#show(suspension);
  }

  protected update(suspension: Suspension): void {
    const { you } = suspension;
    if (this.#people.show(suspension)) this.guard();
    for (const { button } of this.#buttons) button.setAttribute("aria-disabled", String(!this.isReady));
    this.#form?.disable(!this.isOpen);
    if (this.#text !== undefined) this.#text.input.disabled = !this.isOpen;
    this.#comment.element.hidden = !this.isOpen;
    this.#expiry.hidden = this.closed !== undefined;
    if (this.closed === undefined && you?.may_answer === false) {
      say(this.status, line(you.why_not ?? "You may not answer this."));
    }
  }

  protected override tick(suspension: Suspension, now: number): void {
    say(this.#expiry, expiry(suspension, now));
  }

  protected override place(error: ToolgateError): string {
    const inside = error.errors.flatMap(({ pointer, message }) => {
      const [first, ...path] = parts(pointer);
      return first === "data" || first === undefined ? [{ path, keyword: "host", message }] : [];
    });
    if (inside.length === 0) return error.detail;
    if (this.#form !== undefined) {
      this.#form.place(inside);
      return "The host rejected this answer. See the fields.";
    }
    if (this.#text === undefined) return error.detail;
    this.#complain(
      inside
        .map(({ path, message }) => [path.map(line).join(" › "), message].filter(Boolean).join(": "))
        .join("; "),
    );
    return "The host rejected this answer.";
  }

  /** Makes the form. If that fails, a field for the answer as JSON replaces it. */
  async #show(suspension: Suspension): Promise<void> {
    this.#shown += 1;
    const shown = this.#shown;
    const schema = suspension.response_schema as Schema | null | undefined;
    if (schema === null || schema === undefined) {
      // With several decisions, the choice is the answer.
      if (suspension.allowed.length === 1) this.#showText("Your answer", false);
      return;
    }
    if (isStrange(schema)) {
      this.#showText("Your answer, as JSON (the form has names that cannot be shown)", true);
      return;
    }
    try {
      const { mount } = await import("../form/mount.js");
      if (shown !== this.#shown || !this.isConnected) return;
      const element = make("div", { class: "form-root" });
      fill(this.#place, element);
      this.#form = mount(element, {
        schema,
        onSubmit: () => void this.#main(),
        onBroken: () => queueMicrotask(() => shown === this.#shown && this.#showBroken()),
      });
      this.#form.disable(!this.isOpen);
    } catch {
      if (shown === this.#shown) this.#showBroken();
    }
  }

  #showBroken(): void {
    this.#form?.unmount();
    this.#form = undefined;
    this.#showText("Your answer, as JSON (the form cannot be shown)", true);
  }

  #showText(label: string, isJson: boolean): void {
    const problem = make("p", { class: "error", attributes: { id: freshId() } });
    const input = make("textarea", {
      attributes: { id: freshId(), rows: "3", "aria-describedby": problem.id },
    });
    input.disabled = !this.isOpen;
    fill(
      this.#place,
      make("label", { class: "label", attributes: { for: input.id } }, label),
      input,
      problem,
    );
    this.#text = { input, problem, isJson };
  }

  #unmount(): void {
    this.#shown += 1;
    const form = this.#form;
    // React refuses an unmount during a render.
    if (form !== undefined) queueMicrotask(() => form.unmount());
    this.#form = undefined;
    this.#text = undefined;
    fill(this.#place);
  }

  /** The data that is sent with a decision. */
  #value(decision: string): unknown {
    const { allowed = [], response_schema: schema } = this.suspension ?? {};
    if (allowed.length > 1 && DECLINES.test(decision)) return undefined;
    // A form that is still loading is not an empty form.
    if (this.#form === undefined && this.#text === undefined) return schema == null ? undefined : INVALID;
    // The form belongs to the first decision. With another decision, an empty form is left out.
    const isNeeded = decision === allowed[0] || decision === "answer";
    const hasValue =
      this.#form === undefined
        ? this.#text?.input.value.trim() !== ""
        : this.#form.isTouched || !this.#form.isEmpty;
    if (!isNeeded && !hasValue) return undefined;
    if (this.#form !== undefined) {
      const read = this.#form.read();
      return read === undefined ? INVALID : read.data;
    }
    return this.#textValue();
  }

  #textValue(): unknown {
    const { input, isJson } = this.#text ?? {};
    const text = input?.value ?? "";
    this.#complain("");
    if (isJson !== true) return text.trim() === "" ? undefined : text;
    try {
      JSON.parse(text);
      // Sent as it was written, because a parsed number could lose digits.
      return new RawJson(text);
    } catch (error) {
      this.#complain(`This is not JSON: ${error instanceof Error ? line(error.message) : ""}`);
      return INVALID;
    }
  }

  #complain(message: string): void {
    if (this.#text === undefined) return;
    const { input, problem } = this.#text;
    say(problem, message);
    if (message === "") input.removeAttribute("aria-invalid");
    else {
      input.setAttribute("aria-invalid", "true");
      input.focus();
    }
  }

  async #main(): Promise<void> {
    const [first] = this.#buttons;
    if (first !== undefined) await this.answer(first.decision);
  }

  #key(event: KeyboardEvent): void {
    if (event.repeat || event.altKey || event.defaultPrevented) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.#main();
      return;
    }
    const at = event.composedPath()[0];
    const writes = at instanceof Element && at.matches("input, textarea, select, button, summary");
    const chosen = this.#buttons[Number(event.key) - 1];
    if (!writes && !event.ctrlKey && !event.metaKey && chosen !== undefined && this.#buttons.length > 1) {
      event.preventDefault();
      void this.answer(chosen.decision);
    }
  }
}
