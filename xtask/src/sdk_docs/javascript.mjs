// Prints the public names of @toolgate/sdk as JSON, for `cargo xtask sdk-docs`. It runs in the folder of the SDK, and reads
// the declarations that TypeScript reads.

import { readFileSync } from "node:fs";
import { declarations, merged, ofStatement } from "./declarations.mjs";

/** The modules of `package.json` with types, and the global names. */
const exported = Object.entries(JSON.parse(readFileSync("package.json", "utf8")).exports);
const modules = exported.flatMap(([path, { types }]) =>
  types ? [{ name: `@toolgate/sdk${path.slice(1)}`, file: types }] : [],
);
modules.push({ name: "Global names", file: "src/globals.d.ts" });

// The function that an author writes is no function of the SDK.
const fails = (owner) => owner !== "Runs";

const entries = modules.flatMap(({ name, file }) => {
  const source = declarations(file, readFileSync(file, "utf8"));
  // The comment at the beginning of the file is about the module.
  const comment = /^(\/\/ .*\n)+/.exec(source.text)?.[0] ?? "";
  const text = comment.replace(/^\/\/ /gm, "");
  const signature = name.startsWith("@") ? `import { … } from "${name}";` : "";
  const found = source.statements.flatMap((statement) => ofStatement(statement, fails));
  return [{ depth: 2, name, signature, text: text.trim() }, ...merged(found)];
});
process.stdout.write(JSON.stringify(entries));
