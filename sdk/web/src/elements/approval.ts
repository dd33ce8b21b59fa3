/**
 * `<toolgate-approval>`: an approval before a call runs. The card shows the complete arguments and the changes of an edit. It takes
 * one answer, and closes as soon as anyone's answer is accepted.
 */
import { RawJson } from "../json-text.js";
import type { ToolgateError } from "../problem.js";
import { line } from "../text.js";
import type { Answer, EditDefaults, Suspension } from "../wire.js";
import { appliedDefaults, approvedArguments, approvedEdit, Section } from "./arguments.js";
import { ArgumentsEditor } from "./arguments-editor.js";
import { Card } from "./card.js";
import { CommentField } from "./comment.js";
import { fill, freshId, make, say } from "./dom.js";
import { DoubtControls } from "./doubts.js";
import { People } from "./people.js";
import { context, earlier, expiry, header, prompt, promptBy, reason } from "./sections.js";
import { StandingControls } from "./standing.js";

/** Elements that take text, so that letter keys are no shortcuts in them. */
const WRITES = "input:not([type=checkbox], [type=radio]), textarea, select";

/** The element `<toolgate-approval>`: an approval before a call runs. */
export class ToolgateApproval extends Card {
  #approve = make("button", { part: "approve", class: "good", attributes: { type: "button" } });
  #deny = make("button", { part: "deny", class: "bad", attributes: { type: "button" } });
  #edit = make("button", { part: "edit", attributes: { type: "button" } });
  #comment = new CommentField();
  #people = new People((binding) => void this.approveEditOf(binding));
  #arguments = new Section("arguments");
  #defaults = new Section("defaults");
  #expiry = make("p", { part: "expiry", class: "muted" });
  #inputs = make("div", { class: "fields" });
  #delegate = make("details", { part: "delegate" });
  #to = make("input", {
    attributes: { type: "text", id: freshId(), autocomplete: "off", spellcheck: "false" },
  });
  #hand = make("button", { part: "hand", attributes: { type: "button" } }, "Delegate");
  #editor: ArgumentsEditor | undefined;
  #standing: StandingControls | undefined;
  #doubts: DoubtControls | undefined;
  /** Whether the approve key was pressed once, where it must be pressed twice. */
  #armed = false;

  constructor() {
    super();
    fill(this.#deny, "Deny", make("kbd", { attributes: { "aria-hidden": "true" } }, "d"));
    this.#approve.addEventListener("click", () => void this.approve());
    this.#deny.addEventListener("click", () => void this.deny());
    this.#edit.addEventListener("click", () => this.refuses() || this.#toggleEditor());
    this.#hand.addEventListener("click", () => void this.delegate(this.#to.value));
    fill(
      this.#delegate,
      make("summary", {}, "Delegate this decision"),
      make(
        "div",
        { class: "row" },
        make(
          "label",
          { attributes: { for: this.#to.id } },
          make("span", { class: "label" }, "Principal"),
          this.#to,
        ),
        this.#hand,
      ),
    );
    this.addEventListener("keydown", (event) => this.#key(event));
    this.addEventListener("focusout", () => this.#arm(false));
  }

  /** Whether the arguments are being edited. */
  get isEditing(): boolean {
    return this.#editor?.isOpen === true;
  }

  /** Whether the approval also covers later calls. */
  get isStanding(): boolean {
    return this.#standing?.isWanted === true;
  }

  /** Whether an approval must decide about requests that a kill of the host left in doubt. */
  get decidesRequests(): boolean {
    return this.#doubts !== undefined;
  }

  /** The comment, as a member of the answer. */
  get comment(): { comment?: string } {
    return this.#comment.said;
  }

  /** Whether approving the submitted arguments would repeat this principal's vote, or replace their vote for an edit. */
  get hasVoted(): boolean {
    const { you } = this.suspension ?? {};
    return you?.voted === true && (!you.counts_again || this.#hasVotedOtherwise);
  }

  /** Approves, with the edit and the standing approval if there are any. Returns whether the host accepted it. */
  async approve(): Promise<boolean> {
    if (this.refuses()) return false;
    const answer: Answer = { decision: "approve", ...this.#comment.said };
    if (this.#doubts !== undefined) {
      const decisions = this.#doubts.read();
      if (decisions === undefined) {
        say(this.problem, "Decide about each request first. An answer needs a status from 200 to 599.");
        return false;
      }
      answer.arguments = decisions;
    } else if (this.#editor?.isOpen) {
      const edited = this.#editor.read();
      if (edited === undefined) {
        say(this.problem, "The edited arguments are not valid JSON. Correct them, or stop editing.");
        return false;
      }
      if (edited.isChanged) answer.arguments = edited.value;
    }
    const standing = this.#standing?.read();
    if (standing === "invalid") {
      say(this.problem, "The limits of the standing approval are not valid.");
      return false;
    }
    if (standing !== undefined) answer.standing = standing;
    const isTaken = await this.send(answer);
    if (isTaken && this.#editor?.isOpen) this.#toggleEditor();
    return isTaken;
  }

  /** Approves another approver's edit: the one whose vote has this binding. */
  async approveEditOf(binding: string): Promise<boolean> {
    const text = this.#people.textOf(binding);
    const { you, editable } = this.suspension ?? {};
    if (text === undefined || editable === "none") return false;
    if (you?.binding === binding && !you.counts_again) return false;
    if (this.isStanding) {
      this.complain("An approval of an edit cannot also approve later calls. Clear that checkbox first.");
      return false;
    }
    return this.send({ decision: "approve", ...this.#comment.said, arguments: new RawJson(text) });
  }

  /** Denies the call. Returns whether the host accepted it. */
  deny(): Promise<boolean> {
    return this.send({ decision: "deny", ...this.#comment.said });
  }

  protected build(suspension: Suspension): void {
    const level = Number(this.getAttribute("heading-level") ?? "3");
    const { id, element } = header(suspension, level, "Approval");
    const { requests_in_doubt: requests } = suspension;
    this.#doubts = requests?.length ? new DoubtControls(requests) : undefined;
    const isEditable = suspension.editable !== "none" && this.#doubts === undefined;
    this.#editor = isEditable
      ? new ArgumentsEditor(
          suspension,
          () => this.#showEdit(),
          (edited) => this.#defaultsOf(edited),
        )
      : undefined;
    const { standing } = suspension;
    this.#standing =
      standing === null || standing === undefined ? undefined : new StandingControls(suspension, standing);
    this.#comment.clear();
    fill(this.#inputs, this.#doubts?.element, this.#standing?.element, this.#comment.element);
    this.#delegate.open = false;
    this.#to.value = "";
    const actions = make("div", { part: "actions" }, this.#approve, this.#deny, isEditable && this.#edit);
    this.root.replaceChildren(
      make(
        "article",
        { part: "card", attributes: { "aria-labelledby": id, tabindex: "-1" } },
        element,
        reason(suspension),
        earlier(suspension),
        prompt(suspension),
        this.#arguments.element,
        this.#defaults.element,
        this.#editor?.element,
        context(suspension),
        make(
          "p",
          { part: "digest", class: "digest exact" },
          `Digest of the call${suspension.submitted == null ? " as submitted" : ""}: ${line(suspension.digest)}`,
        ),
        this.#people.element,
        this.#expiry,
        this.#inputs,
        actions,
        this.#delegate,
        this.problem,
        this.status,
      ),
    );
    this.#arm(false);
  }

  protected update(suspension: Suspension): void {
    const { you } = suspension;
    this.#arguments.show(approvedArguments(suspension, this.closed));
    this.#defaults.show(appliedDefaults(suspension, this.closed));
    this.#caption(suspension);
    // The buttons have moved, and a press must not reach the wrong one.
    if (this.#people.show(suspension)) this.guard();
    const over = !this.isOpen;
    const blocked = !this.isReady;
    this.#people.allow(suspension, this.closed !== undefined, !blocked);
    for (const button of [this.#approve, this.#deny, this.#edit, this.#hand]) {
      button.setAttribute("aria-disabled", String(blocked));
    }
    if (this.hasVoted && !this.isEditing && !this.#hasVotedOtherwise)
      this.#approve.setAttribute("aria-disabled", "true");
    this.#inputs.hidden = over;
    this.#delegate.hidden = over || you?.may_delegate !== true;
    this.#expiry.hidden = this.closed !== undefined;
    if (over) this.#editor?.close();
    this.#standing?.edit(this.isEditing);
    fill(this.#edit, this.isEditing ? "Stop editing" : "Edit arguments");
    if (!this.#armed) this.#arm(false);
    if (this.closed !== undefined) return;
    if (you?.may_answer === false) say(this.status, line(you.why_not ?? "You may not answer this."));
    else if (you?.voted === true) {
      const what = this.#hasVotedOtherwise ? " with edited arguments" : "";
      const more = you.counts_again
        ? "You have more authority than when you approved. Approve again to use it."
        : "More approvals are needed.";
      say(this.status, `You have approved${what}. ${more}`);
    }
  }

  protected override tick(suspension: Suspension, now: number): void {
    say(this.#expiry, expiry(suspension, now));
  }

  protected override place(error: ToolgateError): string {
    return this.#editor?.isOpen ? this.#editor.place(error) : error.detail;
  }

  /** Delegates the decision to a principal who may not decide yet. Returns whether the host accepted it. */
  async delegate(to: string): Promise<boolean> {
    const name = to.trim();
    if (this.refuses()) return false;
    if (name === "") {
      say(this.problem, "Enter the principal who decides instead of you.");
      return false;
    }
    return this.ask(
      (toolgate, { suspension }) => toolgate.delegate(suspension, name, this.#comment.said.comment),
      () => say(this.status, `You delegated this decision to ${line(name)}.`),
    );
  }

  #toggleEditor(): void {
    if (this.#editor === undefined || !this.isOpen) return;
    if (this.#editor.isOpen) this.#editor.close();
    else this.#editor.open();
    say(this.problem, "");
    this.#showEdit();
  }

  /** Says that the prompt is about the submitted arguments, where an edit was approved. */
  #caption(suspension: Suspension): void {
    const about = approvedEdit(suspension) === undefined ? "" : ", about the arguments as submitted";
    const caption = this.root.querySelector<HTMLElement>("figcaption");
    if (caption !== null) say(caption, promptBy(suspension) + about);
  }

  /** The schema's defaults for what an edit of the arguments leaves out. */
  async #defaultsOf(edited: RawJson): Promise<EditDefaults> {
    const { toolgate, suspension } = this;
    if (toolgate === undefined || suspension === undefined) return {};
    return toolgate.editDefaults(suspension.suspension, edited);
  }

  /** Updates the card to match the editor. */
  #showEdit(): void {
    if (this.suspension !== undefined) this.update(this.suspension);
  }

  /** Whether this principal has approved an edit, and can still approve the submitted arguments instead. */
  get #hasVotedOtherwise(): boolean {
    const { you, digest } = this.suspension ?? {};
    return you?.binding != null && you.binding !== digest;
  }

  #arm(armed: boolean): void {
    this.#armed = armed;
    const plain = this.#hasVotedOtherwise ? "Approve as submitted instead" : "Approve";
    fill(
      this.#approve,
      armed ? "Press again to approve" : this.isEditing ? "Approve as edited" : plain,
      make("kbd", { attributes: { "aria-hidden": "true" } }, "a"),
    );
  }

  #key(event: KeyboardEvent): void {
    const at = event.composedPath()[0];
    const writes = at instanceof Element && at.matches(WRITES);
    if (event.key === "Escape" && this.#editor?.isOpen) {
      this.#toggleEditor();
      this.#edit.focus();
      event.stopPropagation();
      return;
    }
    // A held key answers one card, not each card that gets the focus.
    if (writes || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented)
      return;
    if (!["a", "d", "e"].includes(event.key) || (event.key === "e" && this.isEditing)) return;
    event.preventDefault();
    if (this.refuses()) return;
    if (event.key === "a") this.#approveByKey();
    else if (event.key === "d") void this.deny();
    else this.#toggleEditor();
  }

  /** A call of high risk takes two presses of the key. */
  #approveByKey(): void {
    const { risk } = this.suspension ?? {};
    const isGrave = risk === "high" || risk === "critical";
    if (isGrave && !this.#armed) {
      this.#arm(true);
      say(this.status, `This call has ${risk} risk. Press a again to approve it.`);
    } else {
      this.#arm(false);
      void this.approve();
    }
  }
}
