/** Edits the arguments of a call as JSON, as a whole or by member, and shows the changes. */
import { type Member, members, object, pretty, RawJson } from "../json-text.js";
import { parts } from "../pointer.js";
import { ToolgateError } from "../problem.js";
import { json, line } from "../text.js";
import type { EditDefaults, Suspension } from "../wire.js";
import { changes } from "./changes.js";
import { fill, freshId, make, say } from "./dom.js";
import { defaultsOf } from "./sections.js";

/** One text to edit: a member, or all arguments if `name` is undefined. */
interface Field {
  name: string | undefined;
  before: string;
  input: HTMLTextAreaElement;
  problem: HTMLElement;
}

/** Finds the schema's defaults for what edited arguments leave out. */
type FindDefaults = (edited: RawJson) => Promise<EditDefaults>;

/** The edited arguments. */
export interface Edited {
  isChanged: boolean;
  value: RawJson;
}

export class ArgumentsEditor {
  readonly element = make("section", { part: "editor", class: "fields", attributes: { hidden: "" } });
  readonly #before: string;
  readonly #members: readonly Member[];
  readonly #fields: Field[];
  readonly #diff = make("ol", { part: "diff", attributes: { "aria-label": "Changes" } });
  readonly #defaults = make("div", { part: "edit-defaults" });
  readonly #changed: () => void;
  readonly #find: FindDefaults;
  /** The edit whose defaults are wanted next. Only one is asked about at a time. */
  #wanted: string | undefined;
  #isAsking = false;

  constructor(suspension: Suspension, changed: () => void, find: FindDefaults) {
    const text = suspension.display?.arguments ?? json(suspension.arguments);
    const { editable } = suspension;
    this.#changed = changed;
    this.#find = find;
    this.#before = pretty(text);
    this.#members = members(text) ?? [];
    const member = (name: string) => this.#members.find((one) => one.name === name)?.text ?? "";
    this.#fields = Array.isArray(editable)
      ? editable.map((name) => this.#field(name, pretty(member(name))))
      : [this.#field(undefined, this.#before)];
    const made = this.#fields.map(({ name, input, problem }) =>
      make(
        "div",
        { part: "field" },
        make(
          "label",
          { class: "label", attributes: { for: input.id } },
          name === undefined ? "Arguments, as JSON" : `${line(name)}, as JSON (empty: left out)`,
        ),
        input,
        problem,
      ),
    );
    fill(this.element, ...made, make("div", { class: "label" }, "What changes"), this.#diff, this.#defaults);
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  /** Starts from the submitted arguments. */
  open(): void {
    for (const field of this.#fields) {
      field.input.value = field.before;
      mark(field, "");
    }
    this.element.hidden = false;
    this.#show();
    this.#fields[0]?.input.focus();
  }

  close(): void {
    this.element.hidden = true;
  }

  /** The edited arguments. Undefined if a text is not JSON: then its field shows an error. */
  read(): Edited | undefined {
    const text = this.#text();
    if (text === undefined) return undefined;
    return { isChanged: pretty(text) !== this.#before, value: new RawJson(text) };
  }

  /** Shows the host's errors at their fields. Returns the errors without a field. */
  place(error: ToolgateError): string {
    const rest: string[] = [];
    for (const { pointer, message } of error.errors) {
      const [first, name, ...deeper] = parts(pointer);
      const field = this.#fields.find((one) => one.name === undefined || one.name === name);
      if (first !== "arguments" || field === undefined) {
        rest.push(`${pointer}: ${message}`);
        continue;
      }
      const path = field.name === undefined ? [name, ...deeper].filter((part) => part !== undefined) : deeper;
      mark(field, path.length === 0 ? message : `${path.map(line).join(" › ")}: ${message}`);
      field.input.focus();
    }
    if (error.errors.length === 0) return error.detail;
    return rest.length === 0 ? "The edited arguments are not valid. See the fields." : rest.join("; ");
  }

  #field(name: string | undefined, before: string): Field {
    const problem = make("p", { class: "error", attributes: { id: freshId() } });
    const attributes = {
      id: freshId(),
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      "aria-describedby": problem.id,
      rows: String(Math.min(20, Math.max(1, before.split("\n").length))),
    };
    const input = make("textarea", { part: "input", attributes });
    input.addEventListener("input", () => {
      this.#show();
      this.#changed();
    });
    return { name, before, input, problem };
  }

  /** The JSON text of all arguments. Undefined if a field is not JSON. */
  #text(): string | undefined {
    let isJson = true;
    for (const field of this.#fields) {
      const found = fault(field.input.value, field.name !== undefined);
      mark(field, found);
      isJson &&= found === "";
    }
    if (!isJson) return undefined;
    const [whole] = this.#fields;
    if (whole?.name === undefined) return whole?.input.value;
    const edited = new Map(this.#fields.map(({ name, input }) => [name, input.value.trim()]));
    const kept = this.#members.map(({ name, text }) => ({ name, text: edited.get(name) ?? text }));
    const known = new Set(this.#members.map(({ name }) => name));
    const added = [...edited].flatMap(([name = "", text]) => (known.has(name) ? [] : [{ name, text }]));
    return object([...kept, ...added].filter(({ text }) => text !== ""));
  }

  #show(): void {
    const text = this.#text();
    const items = text === undefined ? [] : changes(this.#before, pretty(text));
    const none = make("li", { class: "muted" }, text === undefined ? "Not JSON yet." : "Nothing yet.");
    fill(this.#diff, ...(items.length === 0 ? [none] : items));
    this.#wanted = items.length === 0 ? undefined : text;
    const loading = make("p", { class: "muted" }, "Loading the tool’s defaults for this edit …");
    fill(this.#defaults, this.#wanted !== undefined && loading);
    void this.#showDefaults();
  }

  /** Shows the defaults for the edit. If it changes meanwhile, those of the newest. */
  async #showDefaults(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    for (let text = this.#wanted; text !== undefined; text = this.#wanted) {
      const found = await this.#defaultsOf(text);
      if (this.#wanted !== text) continue;
      this.#wanted = undefined;
      fill(this.#defaults, ...found);
    }
    this.#isAsking = false;
  }

  async #defaultsOf(text: string): Promise<HTMLElement[]> {
    try {
      const { defaults, display } = await this.#find(new RawJson(text));
      return defaultsOf("this edit leaves out", display, defaults);
    } catch (error) {
      // The answer to an approval has the faults of an edit.
      if (error instanceof ToolgateError && error.code === "invalid") return [];
      const why = error instanceof ToolgateError ? error.detail : String(error);
      return [make("p", { class: "error" }, `The tool’s defaults for this edit are not known: ${line(why)}`)];
    }
  }
}

function fault(text: string, mayBeAbsent: boolean): string {
  if (mayBeAbsent && text.trim() === "") return "";
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? line(error.message) : "it cannot be read"}`;
  }
}

function mark({ input, problem }: Field, message: string): void {
  say(problem, message);
  if (message === "") input.removeAttribute("aria-invalid");
  else input.setAttribute("aria-invalid", "true");
}
