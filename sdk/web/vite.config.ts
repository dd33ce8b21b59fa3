// Builds the package as ES modules with all dependencies. React is in a separate chunk that is loaded with the first form.
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
    // Only a test that hangs reaches this.
    testTimeout: 60_000,
  },
});
