// Text of plugins, models and callers as people are shown it: what could hide, turn around or forge a line is written out.
// The host does the same, and more, wherever it hands out text for people (`display`, problems); this is for what the
// console takes from events, which are exact. See docs/hostile-text.md.

/** Control, direction, invisible and unassigned characters, and every space but the space. */
const DECEIVING =
  /(?![ \n])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u115f\u1160\u2800\u3164\uffa0]|\p{M}{5,}|(?<=^|[\s\p{P}])\p{M}+/gu;

function writtenOut(text: string): string {
  return Array.from(text, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`).join("");
}

/** A text of one or more lines. */
export function shownLines(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(DECEIVING, writtenOut);
}

/** A text on one line. */
export function shown(text: string): string {
  return shownLines(text).replaceAll("\n", "\\n");
}
