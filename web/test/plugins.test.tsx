// The page of all plugins.
import { act } from "react";
import { expect, it, vi } from "vitest";
import { App } from "../src/app";
import { navigate } from "../src/router";
import { host, json, SESSION } from "./fake-host";
import { place, root } from "./mounted";

it("says why no grant can give what a plugin requests", async () => {
  const refusal = "a plugin with a durable tool cannot use folders";
  const requested = [{ what: "folder data", why: "reads it", state: "impossible", refusal }];
  const access = { effective: [], granted: [], granted_to: [], requested };
  const lists = { tools: [], findings: [], notes: [] };
  const plugins = [{ name: "rollout", state: "live", needs_review: false, access, ...lists }];
  host((what) => {
    if (what === "GET /v1/session") return json({ ...SESSION, roles: ["admin"] });
    if (what === "GET /v1/plugins") return json({ plugins });
    return what === "GET /v1/tools?partial=true" ? json({ tools: [] }) : undefined;
  });
  navigate("/plugins");
  await act(async () => root.render(<App />));
  await vi.waitFor(() => expect(place.textContent).toContain(refusal));
  expect(place.querySelector(".badge-bad")?.textContent).toBe("impossible");
});
