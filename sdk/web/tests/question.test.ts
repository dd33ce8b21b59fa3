import "./dom.js";
import { describe, expect, it } from "vitest";
import { ToolgateElicitation } from "../src/elements.js";
import type { Suspension } from "../src/wire.js";
import { press, root, text, type } from "./cards.js";
import { until } from "./fake-clock.js";
import { problem } from "./fake-host.js";
import { article, bodies, host, shown } from "./page.js";

describe("a question", () => {
  const schema = {
    type: "object",
    required: ["age"],
    properties: {
      age: { type: "integer", minimum: 18, title: "Age" },
      house: { type: "object", properties: { city: { type: "string", description: "<img src=x>" } } },
    },
  };
  const question = (given: Partial<Suspension> = {}) =>
    shown(new ToolgateElicitation(), {
      kind: "elicitation",
      tool: "ask",
      allowed: ["answer"],
      response_schema: schema as never,
      ...given,
    });
  const form = (card: HTMLElement) => until(() => root(card).querySelector("form"));
  const field = (card: HTMLElement, name: string) =>
    root(card).querySelector<HTMLInputElement>(`input[id$="_${name}"]`);

  it("has a form from its schema, without any HTML", async () => {
    const card = await question();
    await form(card);
    expect(field(card, "age")?.type).toBe("number");
    expect(field(card, "house_city")).not.toBeNull();
    expect(root(card).querySelector("img")).toBeNull();
    expect(text(card, "form")).toContain("<img src=x>");
  });

  it("lists its choices, and leaves out what the prompt quotes", async () => {
    const args = {
      question: "Which colour?",
      choices: ["red", "<b>blue</b>\u202e"],
      limit: 3,
      context: null,
    };
    const card = await question({
      prompt: "The agent asks: Which colour?",
      arguments: args as never,
      display: { prompt: "The agent asks: Which colour?", arguments: JSON.stringify(args) },
    });
    const shownFacts = root(card).querySelector('[part~="facts"]');
    expect([...(shownFacts?.querySelectorAll("li") ?? [])].map(({ textContent }) => textContent)).toEqual([
      "red",
      "<b>blue</b>\\u{202e}",
    ]);
    expect(shownFacts?.textContent).toMatch(/^choices.*limit3$/);
    expect(shownFacts?.closest("details")).toBeNull();
  });

  it("keeps invalid input, and shows the error at the field", async () => {
    const card = await question();
    await form(card);
    expect(await card.answer("answer")).toBe(false);
    await until(() => field(card, "age")?.getAttribute("aria-invalid") === "true");
    expect(text(card, "form")).toContain("This is required.");
    expect(root(card).activeElement).toBe(field(card, "age"));
    expect(bodies()).toEqual([]);
  });

  it("shows the host's errors at the fields", async () => {
    const card = await question({
      response_schema: { type: "object", properties: { house: schema.properties.house } } as never,
    });
    await form(card);
    host.instead = ({ method }) =>
      method === "POST"
        ? problem(422, "invalid", "no", {
            errors: [{ pointer: "/data/house/city", message: "no such city" }],
          })
        : undefined;
    await card.answer("answer");
    expect(field(card, "house_city")?.getAttribute("aria-invalid")).toBe("true");
    expect(text(card, "form")).toContain("no such city");
    host.instead = undefined;
    expect(await card.answer("answer")).toBe(true);
  });

  it("needs no form to decline", async () => {
    const card = await question({ allowed: ["answer", "decline"] });
    await form(card);
    press(article(card), "2");
    await until(() => bodies().length === 1);
    expect(JSON.parse(bodies()[0] ?? "")).toEqual({ decision: "decline", expect_digest: "sha256:aa" });
  });

  it("takes any text without a schema", async () => {
    const card = await question({ response_schema: null as never });
    type(await until(() => root(card).querySelector("textarea")), "hello");
    await card.answer("answer");
    expect(JSON.parse(bodies()[0] ?? "")).toMatchObject({ data: "hello" });
  });

  it("takes JSON if the form cannot be shown", async () => {
    const strange = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}');
    const card = await question({ response_schema: strange });
    const input = await until(() => root(card).querySelector("textarea"));
    type(input, "{");
    expect(await card.answer("answer")).toBe(false);
    expect(input.getAttribute("aria-invalid")).toBe("true");
    type(input, '{"a":1}');
    expect(await card.answer("answer")).toBe(true);
  });
});
