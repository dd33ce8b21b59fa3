import { describe, expect, it, vi } from "vitest";
import { Host } from "../src/host/host";

function answering(status: number, body: unknown) {
  const asked: Request[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request);
    return new Response(JSON.stringify(body), { status });
  });
  return asked;
}

const REFUSED = { code: "unauthenticated", status: 401, title: "", detail: "log in first" };

describe("the host", () => {
  it("notices wherever a session has ended", async () => {
    const host = new Host();
    host.onSignedOut = vi.fn();
    answering(401, REFUSED);
    await expect(host.get("/v1/audit")).rejects.toMatchObject({ code: "unauthenticated" });
    expect(host.onSignedOut).toHaveBeenCalledOnce();
  });

  it("takes a missing session for an answer where it asks for one", async () => {
    const host = new Host();
    host.onSignedOut = vi.fn();
    answering(401, REFUSED);
    expect(await host.session()).toBeUndefined();
    expect(host.onSignedOut).not.toHaveBeenCalled();
  });

  it("does not send filters that are empty", async () => {
    const asked = answering(200, { entries: [] });
    await new Host().get("/v1/audit", { query: { plugin: "", event: "deny", after: undefined } });
    expect(new URL(asked[0]?.url ?? "").search).toBe("?event=deny");
  });

  it("sends the session's word with whatever changes something", async () => {
    const host = new Host();
    answering(200, { principal: "admin", roles: [], groups: [], csrf: "word" });
    await host.session();
    const asked = answering(200, {});
    await host.post("/v1/policy/explain", { body: { tool: "pay" } });
    expect(asked[0]?.headers.get("x-toolgate-csrf")).toBe("word");
    expect(asked[0]?.headers.has("authorization")).toBe(false);
  });
});
