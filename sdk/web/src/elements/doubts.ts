/** Controls for the requests that a kill of the host left in doubt: one decision for each. */
import { lines } from "../text.js";
import type { RequestInDoubt } from "../wire.js";
import { freshId, make } from "./dom.js";

/** The decisions, by the entry of each request. */
export type Decisions = Record<string, "send_again" | "fail" | { status: number; body: string }>;

const CHOICES = [
  ["", "Decide…"],
  ["send_again", "Send it again"],
  ["done", "It was carried out, with this answer"],
  ["fail", "Fail: the tool gets an error"],
] as const;

interface Row {
  entry: number;
  choice: HTMLSelectElement;
  status: HTMLInputElement;
  body: HTMLTextAreaElement;
}

export class DoubtControls {
  readonly element: HTMLElement;
  readonly #rows: Row[] = [];

  constructor(requests: RequestInDoubt[]) {
    this.element = make(
      "section",
      { part: "doubts", class: "fields" },
      ...requests.map((request) => this.#row(request)),
    );
  }

  /** The decisions. `undefined`: one is missing, or has no valid status. */
  read(): Decisions | undefined {
    const decisions: Decisions = {};
    for (const { entry, choice, status, body } of this.#rows) {
      if (choice.value === "send_again" || choice.value === "fail") decisions[entry] = choice.value;
      else if (choice.value === "done" && status.checkValidity() && status.value !== "")
        decisions[entry] = { status: Number(status.value), body: body.value };
      else return undefined;
    }
    return decisions;
  }

  #row({ entry, request }: RequestInDoubt): HTMLElement {
    const choice = make("select", { attributes: { id: freshId() } });
    choice.append(...CHOICES.map(([value, text]) => make("option", { attributes: { value } }, text)));
    const number = { type: "number", min: "200", max: "599", step: "1", value: "200", id: freshId() };
    const status = make("input", { attributes: number });
    const body = make("textarea", { attributes: { rows: "3", spellcheck: "false", id: freshId() } });
    const answer = make(
      "div",
      { class: "fields", attributes: { hidden: "" } },
      make("label", { class: "label", attributes: { for: status.id } }, "Status of the answer"),
      status,
      make("label", { class: "label", attributes: { for: body.id } }, "Body of the answer"),
      body,
    );
    choice.addEventListener("change", () => {
      answer.hidden = choice.value !== "done";
    });
    this.#rows.push({ entry, choice, status, body });
    const name = `${entry}: ${lines(request)}`;
    return make(
      "div",
      {},
      make("label", { class: "label", attributes: { for: choice.id, dir: "auto" } }, name),
      choice,
      answer,
    );
  }
}
