// Writes `src/generated/api.ts`, which git ignores, from `openapi.json`. Builds, type checks and tests run this first.
// With a URL, `openapi.json` is fetched from that host before:
//   npm run generate -w sdk/web -- http://127.0.0.1:7420
import { mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const snapshot = new URL("../openapi.json", import.meta.url);
const generated = new URL("../src/generated/api.ts", import.meta.url);

const host = process.argv[2];
if (host !== undefined) {
  const response = await fetch(new URL("/openapi.json", host));
  if (!response.ok) throw new Error(`${host}/openapi.json answers ${response.status}`);
  await writeFile(snapshot, `${JSON.stringify(await response.json(), null, 2)}\n`);
}
const document = JSON.parse(await readFile(snapshot, "utf8"));
const types = astToString(await openapiTS(document, { alphabetize: false }));
await mkdir(new URL(".", generated), { recursive: true });
await writeFile(
  generated,
  `// Generated from openapi.json by scripts/generate.mjs. Do not edit.\n\n${types}`,
);
