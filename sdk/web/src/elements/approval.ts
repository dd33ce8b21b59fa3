/**
 * `<toolgate-approval>`: a yes or no before a call runs. It shows what will run in full, and what an edit changes; it takes one
 * answer and is over the moment that anybody's answer stands.
 */
import { RawJson } from "../json-text.js";
import type { ToolgateError } from "../problem.js";
import { line } from "../text.js";
import type { Answer, Suspension } from "../wire.js";
import { ArgumentsEditor } from "./arguments-editor.js";
import { Card } from "./card.js";
import { CommentField } from "./comment.js";
import { fill, freshId, make, say } from "./dom.js";
import { People } from "./people.js";
import { argumentsOf, context, expiry, header, prompt, reason } from "./sections.js";
import { StandingControls } from "./standing.js";

/** Elements in which letters are written rather than pressed. */
const WRITES = "input:not([type=checkbox], [type=radio]), textarea, select";

export class ToolgateApproval extends Card {
  #approve = make("button", { part: "approve", class: "good", attributes: { type: "button" } });
  #deny = make("button", { part: "deny", class: "bad", attributes: { type: "button" } });
  #edit = make("button", { part: "edit", attributes: { type: "button" } });
  #comment = new CommentField();
  #people = new People((binding) => void this.approveEditOf(binding));
  #expiry = make("p", { part: "expiry", class: "muted" });
  #inputs = make("div", { class: "fields" });
  #delegate = make("details", { part: "delegate" });
  #to = make("input", {
    attributes: { type: "text", id: freshId(), autocomplete: "off", spellcheck: "false" },
  });
  #hand = make("button", { part: "hand", attributes: { type: "button" } }, "Hand on");
  #editor: ArgumentsEditor | undefined;
  #standing: StandingControls | undefined;
  /** Whether the key that approves was pressed once where it takes two. */
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
      make("summary", {}, "Let somebody else decide"),
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

  /** Whether somebody is about to change the arguments. */
  get isEditing(): boolean {
    return this.#editor?.isOpen === true;
  }

  /** Whether later calls are to be approved together with this one. */
  get isStanding(): boolean {
    return this.#standing?.isWanted === true;
  }

  /** What somebody says beside their answer, as a member of it. */
  get comment(): { comment?: string } {
    return this.#comment.said;
  }

  /** Whether to approve what was asked is nothing new, or takes this principal's approval of an edit back. */
  get hasVoted(): boolean {
    const { you } = this.suspension ?? {};
    return you?.voted === true && (!you.counts_again || this.#hasVotedOtherwise);
  }

  /** Approves, with the edited arguments and the standing approval if there are any. Says whether that was taken. */
  async approve(): Promise<boolean> {
    if (this.refuses()) return false;
    const answer: Answer = { decision: "approve", ...this.#comment.said };
    if (this.#editor?.isOpen) {
      const edited = this.#editor.read();
      if (edited === undefined) {
        say(this.problem, "The edited arguments are not JSON. Mend them, or leave editing.");
        return false;
      }
      if (edited.isChanged) answer.arguments = edited.value;
    }
    const standing = this.#standing?.read();
    if (standing === "invalid") {
      say(this.problem, "The bounds of the standing approval are wrong.");
      return false;
    }
    if (standing !== undefined) answer.standing = standing;
    const isTaken = await this.send(answer);
    if (isTaken && this.#editor?.isOpen) this.#toggleEditor();
    return isTaken;
  }

  /** Approves exactly what another approver made of the arguments: the edit whose vote has this binding. */
  async approveEditOf(binding: string): Promise<boolean> {
    const text = this.#people.textOf(binding);
    const { you, editable } = this.suspension ?? {};
    if (text === undefined || editable === "none") return false;
    if (you?.binding === binding && !you.counts_again) return false;
    if (this.isStanding) {
      this.complain("With an edit, later calls are not approved as well: take that tick away first.");
      return false;
    }
    return this.send({ decision: "approve", ...this.#comment.said, arguments: new RawJson(text) });
  }

  deny(): Promise<boolean> {
    return this.send({ decision: "deny", ...this.#comment.said });
  }

  protected build(suspension: Suspension): void {
    const level = Number(this.getAttribute("heading-level") ?? "3");
    const { id, element } = header(suspension, level, "Approval");
    const isEditable = suspension.editable !== "none";
    this.#editor = isEditable ? new ArgumentsEditor(suspension, () => this.#showEdit()) : undefined;
    const { standing } = suspension;
    this.#standing =
      standing === null || standing === undefined ? undefined : new StandingControls(suspension, standing);
    this.#comment.clear();
    fill(this.#inputs, this.#standing?.element, this.#comment.element);
    this.#delegate.open = false;
    this.#to.value = "";
    const actions = make("div", { part: "actions" }, this.#approve, this.#deny, isEditable && this.#edit);
    this.root.replaceChildren(
      make(
        "article",
        { part: "card", attributes: { "aria-labelledby": id, tabindex: "-1" } },
        element,
        reason(suspension),
        prompt(suspension),
        argumentsOf(suspension),
        this.#editor?.element,
        context(suspension),
        make(
          "p",
          { part: "digest", class: "digest exact" },
          `Digest of the call: ${line(suspension.digest)}`,
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
    // What was below has moved: a press that was meant for one button is not to reach another.
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
    this.#delegate.hidden = over;
    this.#expiry.hidden = this.closed !== undefined;
    if (over) this.#editor?.close();
    this.#standing?.edit(this.isEditing);
    fill(this.#edit, this.isEditing ? "Leave editing" : "Edit arguments");
    if (!this.#armed) this.#arm(false);
    if (this.closed !== undefined) return;
    if (you?.may_answer === false) say(this.status, line(you.why_not ?? "You may not answer this."));
    else if (you?.voted === true) {
      const what = this.#hasVotedOtherwise ? " with edited arguments" : "";
      const more = you.counts_again
        ? "By now you are asked for more: approve once more."
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

  /** Hands one's say to somebody who has none yet. Says whether that was taken. */
  async delegate(to: string): Promise<boolean> {
    const name = to.trim();
    if (this.refuses()) return false;
    if (name === "") {
      say(this.problem, "Say who is to decide instead of you.");
      return false;
    }
    return this.ask(
      (toolgate, { suspension }) => toolgate.delegate(suspension, name, this.#comment.said.comment),
      () => say(this.status, `Your say is now ${line(name)}’s.`),
    );
  }

  #toggleEditor(): void {
    if (this.#editor === undefined || !this.isOpen) return;
    if (this.#editor.isOpen) this.#editor.close();
    else this.#editor.open();
    say(this.problem, "");
    this.#showEdit();
  }

  /** Brings the rest of the card in line with the editor. */
  #showEdit(): void {
    if (this.suspension !== undefined) this.update(this.suspension);
  }

  /** Whether this principal has approved an edit, and can approve what was asked instead. */
  get #hasVotedOtherwise(): boolean {
    const { you, digest } = this.suspension ?? {};
    return you?.binding != null && you.binding !== digest;
  }

  #arm(armed: boolean): void {
    this.#armed = armed;
    const plain = this.#hasVotedOtherwise ? "Approve as asked instead" : "Approve";
    fill(
      this.#approve,
      armed ? "Press once more to approve" : this.isEditing ? "Approve as edited" : plain,
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
    // A key that is held down is one decision and not one for each card that it reaches.
    if (writes || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented)
      return;
    if (!["a", "d", "e"].includes(event.key) || (event.key === "e" && this.isEditing)) return;
    event.preventDefault();
    if (this.refuses()) return;
    if (event.key === "a") this.#approveByKey();
    else if (event.key === "d") void this.deny();
    else this.#toggleEditor();
  }

  /** Where what could go wrong is much, a single key is not enough. */
  #approveByKey(): void {
    const { risk } = this.suspension ?? {};
    const isGrave = risk === "high" || risk === "critical";
    if (isGrave && !this.#armed) {
      this.#arm(true);
      say(this.status, `This is a call of ${risk} risk: press a once more to approve it.`);
    } else {
      this.#arm(false);
      void this.approve();
    }
  }
}
