// Another site: the demo of sdk/web, built as a user would build it, on its own origin and with a strict policy.
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

export interface Site {
  origin: string;
  close: () => Promise<void>;
}

/** Builds the demo and serves it. */
export async function demo(): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "toolgate-demo-"));
  await build({
    root: join(ROOT, "sdk/web/demo"),
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
        "content-security-policy": POLICY,
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
