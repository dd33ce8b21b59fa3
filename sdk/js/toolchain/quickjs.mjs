// Makes a component from a bundle and QuickJS: node quickjs.mjs TOOLCHAIN WIT WORLD BUNDLE OUT
//
// build.mjs runs this in a process of its own, which gets fixed random numbers and a fixed time: QuickJS reads both while it
// starts, and the component contains its memory.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [toolchain, wit, world, bundle, out] = process.argv.slice(2);
const { componentize } = createRequire(join(toolchain, "package.json"))("componentize-qjs");
try {
  const jsSource = readFileSync(bundle, "utf8");
  const { component } = await componentize({ witPath: wit, world, jsSource, sync: true });
  writeFileSync(out, component);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
