// Other sites, on their own origins and with strict policies: the demo of sdk/web, built as a user would build it, and an MCP client.
import { createReadStream, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { build } from "vite";
import { ROOT } from "./components";

/** The policy from the README of sdk/web. The host is on another origin. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src http://127.0.0.1:*; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const KINDS: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
};

/** The policy of MCP Apps for pages that name no other site. The frame of a page inherits it. */
const POLICY_OF_CARDS =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

export interface Site {
  origin: string;
  close: () => Promise<void>;
}

/** The demo of sdk/web. */
export const demo = () => serve("sdk/web/demo", POLICY);

/** A client that shows the card of a call. */
export const client = () => serve("tests/browser/client", POLICY_OF_CARDS);

/** Builds a site and serves it. */
async function serve(root: string, policy: string): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "toolgate-demo-"));
  await build({
    root: join(ROOT, root),
    logLevel: "error",
    build: { outDir: folder, emptyOutDir: true, modulePreload: { polyfill: false } },
  });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://site");
    const file = join(folder, normalize(pathname === "/" ? "/index.html" : pathname));
    const stream = createReadStream(file);
    stream.on("open", () => {
      response.writeHead(200, {
        "content-type": KINDS[extname(file)] ?? "application/octet-stream",
        "content-security-policy": policy,
      });
      stream.pipe(response);
    });
    stream.on("error", () => response.writeHead(404).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
