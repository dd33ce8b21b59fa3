/** Controls for a standing approval: its duration, number of uses, and the arguments that must be the same. */
import { members } from "../json-text.js";
import { pointer } from "../pointer.js";
import { json, line } from "../text.js";
import type { StandingLimits, StandingRequest, Suspension } from "../wire.js";
import { freshId, make } from "./dom.js";

const MINUTE = 60_000;
const NOT_WITH_EDITS =
  "An approval of an edit cannot also approve later calls. Stop editing to approve them.";

export class StandingControls {
  readonly element: HTMLElement;
  readonly #controls: HTMLElement;
  readonly #note = make("p", { class: "muted" }, NOT_WITH_EDITS);
  readonly #wanted = make("input", { attributes: { type: "checkbox", id: freshId() } });
  readonly #minutes: HTMLInputElement;
  readonly #uses: HTMLInputElement;
  readonly #pins: { name: string; input: HTMLInputElement }[];

  constructor(suspension: Suspension, limits: StandingLimits) {
    const most = Math.max(1, Math.floor(limits.max_ttl_ms / MINUTE));
    this.#minutes = bounded(Math.min(30, most), most);
    this.#uses = bounded(Math.min(5, limits.max_uses), limits.max_uses);
    const text = suspension.display?.arguments ?? json(suspension.arguments);
    this.#pins = (members(text) ?? []).map(({ name }) => {
      const input = make("input", { attributes: { type: "checkbox", id: freshId() } });
      input.checked = true;
      return { name, input };
    });
    const pins = this.#pins.map(({ name, input }) =>
      make(
        "div",
        { class: "choice" },
        input,
        make("label", { attributes: { for: input.id } }, make("code", {}, line(name))),
      ),
    );
    const bounds = make(
      "div",
      { class: "fields", attributes: { hidden: "" } },
      make(
        "div",
        { class: "row" },
        labelled("Minutes", this.#minutes, most),
        labelled("Uses", this.#uses, limits.max_uses),
      ),
      pins.length > 0 &&
        make("fieldset", {}, make("legend", {}, "Only calls with exactly the same values for"), ...pins),
    );
    this.#wanted.addEventListener("change", () => {
      bounds.hidden = !this.#wanted.checked;
    });
    const wanted = `Also approve later calls of ${line(suspension.tool)} like this one by ${line(suspension.caller)}`;
    this.#controls = make(
      "div",
      { class: "fields" },
      make(
        "div",
        { class: "choice" },
        this.#wanted,
        make("label", { attributes: { for: this.#wanted.id } }, wanted),
      ),
      bounds,
    );
    this.element = make("div", { part: "standing" }, this.#controls, this.#note);
    this.edit(false);
  }

  /** Hides the controls during an edit, and shows a note if they were in use. */
  edit(isEditing: boolean): void {
    this.#controls.hidden = isEditing;
    this.#note.hidden = !isEditing || !this.#wanted.checked;
    this.element.hidden = this.#controls.hidden && this.#note.hidden;
  }

  /** Whether the approval also covers later calls. */
  get isWanted(): boolean {
    return this.#wanted.checked && !this.#controls.hidden;
  }

  /** The requested standing approval, if there is one. */
  read(): StandingRequest | undefined | "invalid" {
    if (!this.isWanted) return undefined;
    const [minutes, uses] = [read(this.#minutes), read(this.#uses)];
    if (minutes === undefined || uses === undefined) return "invalid";
    const kept = this.#pins.filter(({ input }) => input.checked);
    const pin = kept.length === this.#pins.length ? "all" : kept.map(({ name }) => pointer([name]));
    return { ttl_ms: minutes * MINUTE, uses, pin };
  }
}

function bounded(value: number, most: number): HTMLInputElement {
  const attributes = { type: "number", min: "1", max: String(most), step: "1", id: freshId(), required: "" };
  const input = make("input", { attributes });
  input.value = String(value);
  return input;
}

function labelled(name: string, input: HTMLInputElement, most: number): HTMLElement {
  return make(
    "label",
    { attributes: { for: input.id } },
    make("span", { class: "label" }, `${name}, at most ${most}`),
    input,
  );
}

function read(input: HTMLInputElement): number | undefined {
  const value = Number(input.value);
  const isWithin = Number.isInteger(value) && value >= 1 && value <= Number(input.max);
  if (isWithin) input.removeAttribute("aria-invalid");
  else input.setAttribute("aria-invalid", "true");
  return isWithin ? value : undefined;
}
