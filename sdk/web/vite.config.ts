// The package as a library: ES modules, with everything that it needs in them. React comes in a chunk of its own, which is
// loaded when the first form is shown.
import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { "process.env.NODE_ENV": JSON.stringify(process.env.NODE_ENV ?? "production") },
  build: {
    target: "es2022",
    lib: { entry: { index: "src/index.ts", elements: "src/elements.ts" }, formats: ["es"] },
    rollupOptions: { output: { chunkFileNames: "[name]-[hash].js" } },
    sourcemap: false,
    emptyOutDir: true,
  },
  test: {
    environment: "node",
    include: ["tests/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    // Only what hangs reaches this.
    testTimeout: 60_000,
  },
});
