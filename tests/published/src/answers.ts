// Writes the answers of the three provider APIs to `host/server/tests/answers`, where the host's tests submit them. With
// `--check` it compares the files instead, and fails if one differs, is missing or has no answer here.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { anthropic } from "./answers/anthropic";
import { openai } from "./answers/openai";

const folder = fileURLToPath(new URL("../../../host/server/tests/answers/", import.meta.url));
const answers: Record<string, unknown> = { ...anthropic, ...openai };
const files = Object.entries(answers).map(([name, answer]) => ({
  file: `${name}.json`,
  text: `${JSON.stringify(answer, null, 2)}\n`,
}));

if (process.argv.includes("--check")) {
  const stored = new Map(readdirSync(folder).map((file) => [file, readFileSync(folder + file, "utf8")]));
  const wrong = files.filter(({ file, text }) => stored.get(file) !== text).map(({ file }) => file);
  const unknown = [...stored.keys()].filter((name) => !files.some(({ file }) => file === name));
  for (const file of [...wrong, ...unknown]) console.error(`${folder}${file} is not what the types give`);
  if (wrong.length + unknown.length > 0) {
    console.error("run `npm run update --workspace tests/published`, and look at the differences");
    process.exitCode = 1;
  }
} else {
  for (const { file, text } of files) writeFileSync(folder + file, text);
}
