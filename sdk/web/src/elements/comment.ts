/** The comment of an answer. The host keeps it with the answer. */
import { freshId, make } from "./dom.js";

export class CommentField {
  readonly element: HTMLElement;
  readonly #input = make("input", {
    attributes: { type: "text", id: freshId(), maxlength: "1000", autocomplete: "off" },
  });

  constructor() {
    const words = "Comment, kept with the answer";
    this.element = make(
      "div",
      { part: "comment" },
      make("label", { class: "label", attributes: { for: this.#input.id } }, words),
      this.#input,
    );
  }

  /** The comment as a member of an answer, if there is one. */
  get said(): { comment?: string } {
    const comment = this.#input.value.trim();
    return comment === "" ? {} : { comment };
  }

  clear(): void {
    this.#input.value = "";
  }
}
