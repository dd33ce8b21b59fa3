// The console is built into static files that the host embeds: nothing inline, nothing from elsewhere, so that the
// strict Content-Security-Policy of host/console holds.

import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Where a host runs while one works on the console. */
const HOST = process.env.TOOLGATE_HOST ?? "http://127.0.0.1:7420";

/** What host/console sends, so that what it would refuse is refused here as well. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/** Writes `x.gz` beside every file that gains by it; the host serves it to whoever accepts gzip. */
function gzipped(): Plugin {
  return {
    name: "toolgate-gzipped",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        for (const [fileName, file] of Object.entries(bundle)) {
          if (!/\.(js|css|svg)$/.test(fileName)) continue;
          const source = gzipSync(file.type === "chunk" ? file.code : file.source, { level: 9 });
          this.emitFile({ type: "asset", fileName: `${fileName}.gz`, source });
        }
      },
    },
  };
}

const proxy = Object.fromEntries(
  ["/v1", "/healthz", "/openapi.json"].map((path) => [path, { target: HOST, changeOrigin: true }]),
);

export default defineConfig({
  plugins: [react(), gzipped()],
  resolve: { conditions: ["toolgate-source", "module", "browser", "development|production"] },
  build: {
    target: ["chrome123", "firefox128", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
  server: { proxy },
  preview: { proxy, headers: { "content-security-policy": POLICY } },
  test: {
    environment: "happy-dom",
    include: ["test/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    // Only what hangs reaches this.
    testTimeout: 60_000,
  },
});
