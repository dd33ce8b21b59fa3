// Builds the console into static files that the host embeds. Nothing is inline or loaded from other sites, so that the strict
// Content-Security-Policy of host/console holds.

import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** The host for the development server. */
const HOST = process.env.TOOLGATE_HOST ?? "http://127.0.0.1:7420";

/** The same policy as host/console, so that the preview refuses the same things. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/** Writes a compressed `x.gz` beside each file for the host to serve. */
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
  ["/v1", "/healthz", "/readyz", "/openapi.json"].map((path) => [path, { target: HOST, changeOrigin: true }]),
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
    // Only a test that hangs reaches this.
    testTimeout: 60_000,
  },
});
