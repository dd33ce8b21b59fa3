// Runs wizer for ComponentizeJS: node wizer.mjs WIZER ARGUMENT…
//
// wizer starts the engine and stores its memory in the component. So the engine must see nothing of this machine: its folders
// get fixed names, and a library in this file's folder, if it is there, fixes random numbers and the time.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [wizer, ...given] = process.argv.slice(2);
const folder = dirname(fileURLToPath(import.meta.url));
let input = readFileSync(0, "utf8");
const args = given.map((arg) => {
  const found = /^--(?:dir=|mapdir=\/::)(.*)$/s.exec(arg);
  if (!found) return arg;
  const seen = arg.startsWith("--dir=") ? "/initializer" : "/";
  input = input.replaceAll(found[1], seen === "/" ? "" : seen);
  return `--mapdir=${seen}::${found[1]}`;
});
// The engine sees the variables: those of ComponentizeJS, but none of a shell. So the path is relative.
const OURS = /^(DEBUG|SOURCE_NAME|FEATURE_CLOCKS|EXPORT_CNT|EXPORT\d+_\w+|IMPORT_CNT|IMPORT\d+_\w+)$/;
const variables = Object.entries(process.env).filter(([name]) => OURS.test(name));
if (existsSync(join(folder, "fixed.so"))) variables.push(["LD_PRELOAD", "./fixed.so"]);
const { status, error } = spawnSync(wizer, args, {
  env: Object.fromEntries(variables.sort()),
  cwd: folder,
  input,
  stdio: ["pipe", "inherit", "inherit"],
});
if (error) console.error(error.message);
process.exitCode = status ?? 1;
