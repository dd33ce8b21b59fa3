/**
 * Escapes untrusted text for people. The host's `display` members are already escaped; this is for the rest: events, titles,
 * comments, names. Characters that hide, reverse text, forge a line or look like other letters are written as `\u{…}`.
 */
import { VIRAMAS } from "./generated/alike.js";
import { serialize } from "./json-text.js";
import { lookalikes } from "./lookalikes.js";

const EMOJI = "[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\p{Regional_Indicator}]";
const EAST_ASIAN =
  "[\\u3001-\\u303f\\uff00-\\uffef\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}\\p{scx=Hangul}]";
/** Invisible characters in places where a language or an emoji needs them. */
const NEEDED = [
  " ",
  `(?<=${EMOJI}\\ufe0f?)\\u200d(?=${EMOJI})`,
  `(?<=[${VIRAMAS}])[\\u200c\\u200d](?![\\p{Script=Latin}\\p{Script=Greek}\\p{Script=Cyrillic}])(?=\\p{Alphabetic})`,
  ...["Arabic", "Syriac", "Mongolian", "Nko"].map((name) => `(?<=\\p{sc=${name}})\\u200c(?=\\p{sc=${name}})`),
  `(?<=${EMOJI})[\\ufe0e\\ufe0f]`,
  "(?<=[0-9#*])\\ufe0f(?=\\u20e3)",
  "(?:[\\u00a0\\u202f](?=[!?:;»%€£–—])|(?<=«)[\\u00a0\\u202f]|(?<=[0-9])[\\u00a0\\u202f](?=[\\p{Alphabetic}\\p{N}]))",
  `(?:(?<=${EAST_ASIAN})\\u3000|\\u3000(?=${EAST_ASIAN}))`,
];
/** Controls, format characters, invisible, private and unassigned characters, and unusual spaces. */
const UNSEEN = new RegExp(
  `(?!${NEEDED.join("|")})[\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800\\u{1d159}\\u{16fe4}]`,
  "gu",
);
/** Marks that cover or enclose their letter. */
const COVERS =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each mark is matched on its own.
  /[\u0334-\u0338\u0488\u0489\u20d2\u20d3\u20d8-\u20da\u20dd-\u20e0\u20e2-\u20e6\u20ea\u20eb\ua670-\ua672\u1abe\ufe20-\ufe2f]/;
/** Characters that cannot carry a mark. */
const BARE = /^$|^[\s!-/:-@[-`{-~\p{Cc}]/u;
const MAX_MARKS = 4;
const PLAIN = /^[ -~\n]*$/;

/** The positions of deceptive characters, by the rules of the host (docs/hostile-text.md). */
function deceiving(text: string): Set<number> {
  const deceptive = lookalikes(text);
  for (const { index } of text.matchAll(UNSEEN)) deceptive.add(index);
  let [before, marks, at, isBare, isKeycap] = ["", 0, 0, true, false];
  for (const c of text) {
    if (!/\p{M}/u.test(c)) marks = 0;
    else if (c === "\u20e3") {
      if (!isKeycap) deceptive.add(at);
    } else if (!/[\ufe00-\ufe0f]/.test(c)) {
      marks += 1;
      if (isBare || marks > MAX_MARKS || c === before || COVERS.test(c)) deceptive.add(at);
    }
    isBare = BARE.test(c) || deceptive.has(at);
    // Variation selectors come between the base of a keycap and its mark.
    if (c !== "\ufe0f") isKeycap = /[0-9#*]/.test(c);
    before = c;
    at += c.length;
  }
  return deceptive;
}

/** Replaces deceptive characters with `written`. Their positions are found in `seen`, a text of the same length. */
function shown(text: string, written: (c: string) => string, seen = text): string {
  if (PLAIN.test(seen)) return text.replaceAll("\n", written);
  const deceptive = deceiving(seen);
  let [made, at] = ["", 0];
  for (const c of text) {
    made += deceptive.has(at) ? written(c) : c;
    at += c.length;
  }
  return made;
}

const BREAKS: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const written = (c: string) => BREAKS[c] ?? `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`;
const units = (c: string) =>
  Array.from({ length: c.length }, (_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");

/** Escapes untrusted text that comes without a `display`, such as the text of events, for one line. */
export function line(text: string): string {
  return shown(text, written);
}

/** Escapes untrusted text that comes without a `display`, and keeps its lines. */
export function lines(text: string): string {
  return shown(text.replaceAll("\r\n", "\n"), (c) => (c === "\n" ? c : written(c)));
}

/**
 * A value as JSON with deceptive characters as `\uXXXX`, for values that come without a `display`. The text of a `RawJson` is
 * kept. Each string is checked on its own, and an existing escape ends a word as a space does.
 */
export function json(value: unknown): string {
  return serialize(value).replace(/"(?:[^"\\]|\\.)*"/g, (string) =>
    shown(
      string,
      units,
      string.replace(/\\(?:u[\da-f]{0,4}|.)/gi, (found) => " ".repeat(found.length)),
    ),
  );
}

/** `principal:alice` as “alice”, `group:finance` as “group finance”. */
export function who(name: string): string {
  const [kind, ...rest] = name.split(":");
  if (rest.length === 0) return line(name);
  return kind === "principal" ? line(rest.join(":")) : `${kind} ${line(rest.join(":"))}`;
}

/** Names in a sentence: “ann, bob and cy”. */
export function names(all: readonly string[]): string {
  const shown = all.map(line);
  const last = shown.pop() ?? "";
  return shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
}

/** A span of time: “2 d 3 h”, “4 min 05 s”. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m, s] = [seconds / 86400, (seconds / 3600) % 24, (seconds / 60) % 60, seconds % 60].map(
    Math.floor,
  ) as [number, number, number, number];
  if (d > 0) return `${d} d ${h} h`;
  if (h > 0) return `${h} h ${m} min`;
  return m > 0 ? `${m} min ${String(s).padStart(2, "0")} s` : `${s} s`;
}

/** A time in the reader's locale. */
export function clockTime(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return line(at);
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
