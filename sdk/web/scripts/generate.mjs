// Writes `src/generated/api.ts` from `openapi.json`. With a URL, the document is fetched from that host first:
//   npm run generate -w sdk/web -- http://127.0.0.1:7420
import { readFile, writeFile } from "node:fs/promises";
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
await writeFile(
  generated,
  `// Generated from openapi.json by scripts/generate.mjs. Do not edit.\n\n${types}`,
);
