import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const at = (path: string) => new URL(`../${path}`, import.meta.url);

it("lists every part of the elements", () => {
  const readme = readFileSync(at("README.md"), "utf8");
  const listed = /Parts for `::part\(\)`:(.*?)\n\n/s.exec(readme)?.[1] ?? "";
  const sources = readdirSync(at("src/elements")).map((file) =>
    readFileSync(at(`src/elements/${file}`), "utf8"),
  );
  const used = sources.flatMap((text) =>
    [...text.matchAll(/(?:part: |new Section\()"([a-z-]+)"/g)].map(([, part]) => part),
  );
  expect(used.length).toBeGreaterThan(40);
  expect([...new Set(used)].filter((part) => !listed.includes(`\`${part}\``))).toEqual([]);
});
