import "./dom.js";
import { describe, expect, it } from "vitest";
import { button, root, text } from "./cards.js";
import { until } from "./fake-clock.js";
import { approval, bodies } from "./page.js";

describe("requests that a kill left in doubt", () => {
  const IN_DOUBT = [
    { entry: 2, request: "http POST https://a/\u202epay", at: "x" },
    { entry: 5, request: "http PUT https://a/b", at: "x" },
  ];
  const doubt = () =>
    approval({
      editable: "all",
      arguments: { "2": "undecided", "5": "undecided" },
      requests_in_doubt: IN_DOUBT,
    });

  it("are decided one by one", async () => {
    const card = await doubt();
    expect(text(card, "reason")).toContain("Decide about each");
    const labels = [...root(card).querySelectorAll('[part~="doubts"] > div > label')];
    expect(labels.map(({ textContent }) => textContent)).toEqual([
      "2: http POST https://a/\\u{202e}pay",
      "5: http PUT https://a/b",
    ]);
    expect(button(card, "edit")).toBeNull();
    expect(await card.approve()).toBe(false);
    expect(root(card).textContent).toContain("Decide about each request first");
    const choices = [...root(card).querySelectorAll("select")];
    const choose = (at: number, value: string) => {
      const choice = choices[at] as HTMLSelectElement;
      choice.value = value;
      choice.dispatchEvent(new window.Event("change"));
    };
    choose(0, "send_again");
    expect(await card.approve()).toBe(false);
    choose(1, "done");
    const [, status] = [...root(card).querySelectorAll<HTMLInputElement>('[part~="doubts"] input')];
    const [, body] = [...root(card).querySelectorAll("textarea")];
    (status as HTMLInputElement).value = "201";
    (body as HTMLTextAreaElement).value = "{}";
    expect(await card.approve()).toBe(true);
    await until(() => card.hasAttribute("closed"));
    const decisions = '{"2":"send_again","5":{"status":201,"body":"{}"}}';
    expect(bodies()).toEqual([`{"decision":"approve","arguments":${decisions},"expect_digest":"sha256:aa"}`]);
  });
});
