// The page of one suspension.
import type { Suspension } from "@toolgate/web";
import { act } from "react";
import { expect, it, vi } from "vitest";
import { App } from "../src/app";
import { navigate } from "../src/router";
import { place, root } from "./mounted";

const SESSION = { principal: "ann", roles: ["approver"], groups: [], csrf: "word" };
const ASKED = {
  suspension: "susp_1",
  conversation: "c",
  turn: "turn_1",
  call: "1",
  tool: "pick_file",
  state: "open",
  prompt_by: "host",
  arguments: { amount: 50 },
  arguments_digest: "sha256:ed",
  submitted: { amount: 5000 },
  caller: "agent",
  allowed: [],
  editable: "none",
  needs: [],
  created_at: "2026-01-01T00:00:00Z",
  expires_at: "2999-01-01T00:00:00Z",
  on_expiry: "error",
  digest: "sha256:aa",
  you: { may_answer: false, voted: false, counts_again: false, may_delegate: false },
};

it.each([
  ["client_exec", "toolgate-client-call"],
  ["approval", "toolgate-approval"],
])("shows edited arguments of %s beside the submitted ones", async (kind, element) => {
  const asked = { ...ASKED, kind } as unknown as Suspension;
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/events")) return new Promise(() => {});
    const body = pathname === "/v1/session" ? SESSION : pathname === "/v1/suspensions/susp_1" ? asked : {};
    return new Response(JSON.stringify(body));
  });
  navigate("/suspensions/susp_1");
  await act(async () => root.render(<App />));
  const part = (name: string) =>
    place.querySelector(element)?.shadowRoot?.querySelector(`[part~="${name}"]`)?.textContent ?? "";
  await vi.waitFor(() => expect(part("submitted")).toContain('"amount": 5000'));
  expect(part("arguments")).toContain('"amount": 50\n');
  expect(part("diff")).toContain('removed:   "amount": 5000');
});
