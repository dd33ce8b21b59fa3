// The page of the public names fails for a kind of name that its reader does not know.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const sdk = fileURLToPath(new URL("..", import.meta.url));
const reader = fileURLToPath(new URL("../../../xtask/src/sdk_docs/javascript.mjs", import.meta.url));

/** Runs the reader on a copy of the SDK whose module `config` declares this too. */
function read(/** @type {string} */ added) {
  const folder = mkdtempSync(join(tmpdir(), "names-"));
  try {
    for (const part of ["package.json", "src"])
      cpSync(join(sdk, part), join(folder, part), { recursive: true });
    appendFileSync(join(folder, "src/config.d.ts"), added);
    return spawnSync(process.execPath, [reader], { cwd: folder, encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("known kinds are read", () => {
  const added =
    "\n/** More. */\nexport declare function more(): number;\n/** Most. */\nexport declare const most: number;\n";
  const { status, stdout, stderr } = read(added);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /"more"/);
  assert.match(stdout, /"most"/);
});

test("other kinds fail", () => {
  for (const added of ["export declare enum Size { Small }", "export { more };"]) {
    const { status, stderr } = read(`\n${added}\n`);
    assert.notEqual(status, 0, added);
    assert.ok(stderr.includes(`does not know this kind of public name: ${added}`), stderr);
  }
});
