/** The difference between two texts, line by line. */
import { pretty } from "./json-text.js";
import { json } from "./text.js";

/** One line of a difference. */
export interface DiffLine {
  /** Whether both texts have the line, or only one of them. */
  kind: "same" | "removed" | "added";
  /** The line, escaped for people. */
  text: string;
}

/** Above this many comparisons, the difference is one block instead of single lines. */
const MOST = 1_000_000;

/**
 * The difference between two JSON values as people see them, such as the changes of an edit in a timeline. Without a difference, every
 * line is `same`.
 */
export function shownChanges(before: unknown, after: unknown): DiffLine[] {
  return diff(pretty(json(before)), pretty(json(after)));
}

export function diff(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const middle = changed(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [...a.slice(0, start).map(same), ...middle, ...a.slice(a.length - end).map(same)];
}

/** Finds the longest common subsequence of lines with dynamic programming. */
function changed(a: string[], b: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  if (a.length * b.length > MOST) return [...a.map(removed), ...b.map(added)];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => longest[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const found: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]];
    if (left !== undefined && left === right) {
      found.push({ kind: "same", text: left });
      i += 1;
      j += 1;
    } else if (right === undefined || (left !== undefined && at(i + 1, j) >= at(i, j + 1))) {
      found.push(removed(left ?? ""));
      i += 1;
    } else {
      found.push(added(right));
      j += 1;
    }
  }
  return found;
}
