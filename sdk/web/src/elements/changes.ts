/** The changes of an edit, line by line, readable without colours and by screen readers. */
import { diff } from "../diff.js";
import { make } from "./dom.js";

const SIGNS = {
  same: { seen: " ", heard: "" },
  removed: { seen: "−", heard: "removed: " },
  added: { seen: "+", heard: "added: " },
};

/** The lines of both texts as list items; empty if the texts are the same. */
export function changes(before: string, after: string): HTMLLIElement[] {
  const found = diff(before, after);
  if (found.every(({ kind }) => kind === "same")) return [];
  return found.map(({ kind, text }) => {
    const { seen, heard } = SIGNS[kind];
    const sign = make("span", { attributes: { "aria-hidden": "true" } }, `${seen} `);
    return make("li", { class: kind }, sign, make("span", { class: "unseen" }, heard), text);
  });
}
