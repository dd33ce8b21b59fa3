/** What an edit of arguments changes, line by line, so that it is seen without colours and heard without eyes. */
import { diff } from "../diff.js";
import { make } from "./dom.js";

const SIGNS = {
  same: { seen: " ", heard: "" },
  removed: { seen: "−", heard: "removed: " },
  added: { seen: "+", heard: "added: " },
};

/** The lines of both texts as items of a list; none, where the texts are the same. */
export function changes(before: string, after: string): HTMLLIElement[] {
  const found = diff(before, after);
  if (found.every(({ kind }) => kind === "same")) return [];
  return found.map(({ kind, text }) => {
    const { seen, heard } = SIGNS[kind];
    const sign = make("span", { attributes: { "aria-hidden": "true" } }, `${seen} `);
    return make("li", { class: kind }, sign, make("span", { class: "unseen" }, heard), text);
  });
}
