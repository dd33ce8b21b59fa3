// The page of one suspension.
import { act } from "react";
import { expect, it, vi } from "vitest";
import { App } from "../src/app";
import { navigate } from "../src/router";
import { host, json, OPEN, SESSION } from "./fake-host";
import { place, root } from "./mounted";

async function open(asked: object) {
  host((what) => {
    if (what === "GET /v1/session") return json(SESSION);
    return what === "GET /v1/suspensions/susp_1" ? json(asked) : undefined;
  });
  navigate("/suspensions/susp_1");
  await act(async () => root.render(<App />));
}

it.each([
  ["client_exec", "toolgate-client-call"],
  ["approval", "toolgate-approval"],
])("shows edited arguments of %s beside the submitted ones", async (kind, element) => {
  await open({ ...OPEN, kind, arguments: { amount: 50 }, submitted: { amount: 5000 } });
  const part = (name: string) =>
    place.querySelector(element)?.shadowRoot?.querySelector(`[part~="${name}"]`)?.textContent ?? "";
  await vi.waitFor(() => expect(part("submitted")).toContain('"amount": 5000'));
  expect(part("arguments")).toContain('"amount": 50\n');
  expect(part("diff")).toContain('removed:   "amount": 5000');
});

it.each([
  ["external", "An external system sends the result."],
  ["timer", "The call sleeps."],
  ["rate_limit", "A server has asked to send a request later."],
  ["children", "The call waits for the calls of a nested turn."],
  ["of_a_newer_host", "The call waits."],
])("says why a call waits whose suspension is %s", async (kind, reason) => {
  await open({ ...OPEN, kind });
  await vi.waitFor(() => expect(place.querySelector("p.card")?.textContent).toBe(`${reason} open`));
});

it("says through which tool a nested call came, with a link to its turn", async () => {
  const parent = {
    conversation: "c",
    turn: "turn_1",
    call: "p",
    plugin: "rollout",
    tool: "roll_out\u202E",
    depth: 1,
  };
  await open({ ...OPEN, kind: "approval", conversation: "~c", parent });
  const through = "roll_out\\u{202e} of the plugin rollout, which chose the arguments";
  await vi.waitFor(() => expect(place.textContent).toContain(`${through}, in turn_1`));
  expect(place.querySelector('a[href="/conversations/c#turn_1"]')).not.toBeNull();
  const card = place.querySelector("toolgate-approval")?.shadowRoot;
  await vi.waitFor(() => expect(card?.querySelector(".from")?.textContent).toContain(`called by ${through}`));
});
