import "./dom.js";
import { describe, expect, it } from "vitest";
import { ToolgateElicitation } from "../src/elements.js";
import type { Suspension } from "../src/wire.js";
import { root, text, type } from "./cards.js";
import { until } from "./fake-clock.js";
import { suspension } from "./fake-host.js";
import { appeared, bodies, clock, host } from "./page.js";

/** Shows a question with this schema and its form. */
async function question(properties: object, given: Partial<Suspension> = {}, required: string[] = []) {
  const card = await appeared(new ToolgateElicitation(), {
    kind: "elicitation",
    tool: "ask",
    allowed: ["approved", "rejected", "later"],
    response_schema: { type: "object", required, properties } as never,
    ...given,
  });
  await until(() => root(card).querySelector("form, textarea"));
  clock.advance(500);
  return card;
}

const field = (card: HTMLElement, name: string) =>
  root(card).querySelector<HTMLInputElement>(`input[id$="_${name}"]`);
/** Types as a person does. React ignores a value that a script sets on the element. */
function enter(input: HTMLInputElement | null, value: string): void {
  if (input === null) throw new Error("there is no such field");
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set?.call(input, value);
  input.dispatchEvent(new window.Event("input", { bubbles: true }));
}

const sent = () => bodies().map((body) => JSON.parse(body) as Record<string, unknown>);

describe("a question with a form and several responses", () => {
  it("sends the shown defaults of an untouched form", async () => {
    const card = await question({ amount: { type: "integer", default: 50 } });
    expect(field(card, "amount")?.value).toBe("50");
    expect(await card.answer("approved")).toBe(true);
    expect(sent()).toMatchObject([{ decision: "approved", data: { amount: 50 } }]);
  });

  it("sends defaults with any response that does not decline", async () => {
    const card = await question({ amount: { type: "integer", default: 50 } });
    await card.answer("later");
    expect(sent()).toMatchObject([{ decision: "later", data: { amount: 50 } }]);
  });

  it("is not approved without its required fields", async () => {
    const card = await question({ amount: { type: "integer" } }, {}, ["amount"]);
    expect(await card.answer("approved")).toBe(false);
    await until(() => field(card, "amount")?.getAttribute("aria-invalid") === "true");
    expect(bodies()).toEqual([]);
  });

  it("can be rejected without them, and says so before", async () => {
    const card = await question({ amount: { type: "integer", default: 50 } }, {}, ["amount"]);
    expect(text(card, "note")).toBe("These answers ignore the form: “rejected”.");
    enter(field(card, "amount"), "7");
    await card.answer("rejected");
    expect(sent()).toEqual([{ decision: "rejected", expect_digest: "sha256:aa" }]);
  });

  it("sends other responses without an empty form", async () => {
    const house = { type: "object", properties: { city: { type: "string" } } };
    const card = await question({ house, amount: { type: "integer" } }, {}, ["amount"]);
    await card.answer("later");
    expect(sent()).toEqual([{ decision: "later", expect_digest: "sha256:aa" }]);
  });

  it("is not answered while its form is loading", async () => {
    const card = await question({ amount: { type: "integer", default: 50 } });
    const other = suspension({ ...card.suspension, suspension: "susp_other" });
    host.add(other);
    card.suspension = other;
    clock.advance(500);
    expect(await card.answer("approved")).toBe(false);
    expect(bodies()).toEqual([]);
  });

  it("is answered with a comment that the next card does not keep", async () => {
    const card = await question({ amount: { type: "integer" } });
    const comment = () => root(card).querySelector<HTMLInputElement>('[part="comment"] input');
    type(comment(), " too much ");
    await card.answer("rejected");
    expect(sent()).toMatchObject([{ decision: "rejected", comment: "too much" }]);
    card.suspension = suspension({ kind: "elicitation", allowed: ["yes", "no"] });
    expect(comment()?.value).toBe("");
  });
});

describe("typed numbers", () => {
  const numbers = { n: { type: "integer" }, x: { type: "number" } };

  it.each(["12345678901234567890", "0.12345678901234567890", "1e400", "5e-400"])(
    "are refused at the field where they would be changed: %s",
    async (long) => {
      const card = await question(numbers, { allowed: ["answer"] });
      enter(field(card, "x"), long);
      expect(field(card, "x")?.value).toBe(long);
      expect(await card.answer("answer")).toBe(false);
      expect(text(card, "form")).toContain("This number has more digits than can be sent exactly.");
      expect(field(card, "x")?.getAttribute("aria-invalid")).toBe("true");
      expect(bodies()).toEqual([]);
      enter(field(card, "x"), "1.50");
      expect(field(card, "x")?.value).toBe("1.50");
      expect(await card.answer("answer")).toBe(true);
      expect(sent()).toMatchObject([{ data: { x: 1.5 } }]);
    },
  );

  it("are sent as they were written as JSON", async () => {
    const card = await question({ constructor: { type: "integer" } }, { allowed: ["answer"] });
    type(root(card).querySelector("textarea"), '{"n":12345678901234567890}');
    await card.answer("answer");
    expect(bodies()[0]).toContain('"data":{"n":12345678901234567890}');
  });
});
