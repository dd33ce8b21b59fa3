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
  it("notices the end of a session in any response", async () => {
    const host = new Host();
    host.onSignedOut = vi.fn();
    answering(401, REFUSED);
    await expect(host.get("/v1/audit")).rejects.toMatchObject({ code: "unauthenticated" });
    expect(host.onSignedOut).toHaveBeenCalledOnce();
  });

  it("treats a missing session as an answer", async () => {
    const host = new Host();
    host.onSignedOut = vi.fn();
    answering(401, REFUSED);
    expect(await host.session()).toBeUndefined();
    expect(host.onSignedOut).not.toHaveBeenCalled();
  });

  it("does not send empty filters", async () => {
    const asked = answering(200, { entries: [] });
    await new Host().get("/v1/audit", { query: { plugin: "", event: "deny", after: undefined } });
    expect(new URL(asked[0]?.url ?? "").search).toBe("?event=deny");
  });

  it("sends the CSRF token with every change", async () => {
    const host = new Host();
    answering(200, { principal: "admin", roles: [], groups: [], csrf: "word" });
    host.act(await host.session());
    const asked = answering(200, {});
    await host.post("/v1/policy/explain", { body: { tool: "pay" } });
    expect(asked[0]?.headers.get("x-toolgate-csrf")).toBe("word");
    expect(asked[0]?.headers.has("authorization")).toBe(false);
  });

  describe("with a link's session beside a log-in", () => {
    const link = { principal: "bob", only: "s1", csrf: "links", expires_at: "" };
    const alice = { principal: "alice", roles: [], groups: [], csrf: "alices", link };

    /** A host whose response to the link's session is given. Returns the session of the next change. */
    function beside(byLink: () => Response) {
      vi.stubGlobal("fetch", async ({ headers }: Request) =>
        headers.get("x-toolgate-csrf") === "links" ? byLink() : new Response(JSON.stringify(alice)),
      );
      return async (host: Host) => {
        const asked = answering(200, {});
        await host.post("/v1/suspensions/s1/resolve");
        return asked.map(({ headers }) => headers.get("x-toolgate-csrf"));
      };
    }

    it("uses the link's session on its page only", async () => {
      const host = new Host();
      const bob = { ...link, roles: [], groups: [] };
      const names = beside(() => new Response(JSON.stringify(bob)));
      const asOncall = await host.session("s1");
      expect(asOncall).toMatchObject({ principal: "bob", only: "s1" });
      host.act(asOncall);
      expect(await names(host)).toEqual(["links"]);
      beside(() => new Response(JSON.stringify(bob)));
      const asAlice = await host.session("s2");
      expect(asAlice).toMatchObject({ principal: "alice" });
      expect(await names(host), "until it is asked to act in that name").toEqual(["links"]);
      host.act(asAlice);
      expect(await names(host)).toEqual(["alices"]);
    });

    it("keeps its session if the host does not name the link's", async () => {
      const host = new Host();
      const names = beside(() => {
        throw new TypeError("the network is away");
      });
      host.act(await host.session());
      await expect(host.session("s1")).rejects.toMatchObject({ code: "unreachable" });
      expect(await names(host)).toEqual(["alices"]);
    });

    it("uses the log-in if the link's session has just ended", async () => {
      const host = new Host();
      const names = beside(() => new Response(JSON.stringify(REFUSED), { status: 401 }));
      const session = await host.session("s1");
      expect(session).toMatchObject({ principal: "alice" });
      host.act(session);
      expect(await names(host)).toEqual(["alices"]);
    });
  });
});
