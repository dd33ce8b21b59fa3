/**
 * Letters that look like other letters, by the rules of the host (docs/hostile-text.md, host/escape/src/words.rs): for texts that come
 * without a `display`. The tables of letters are generated from the host's own.
 */
import { ALIKE, LATIN_ALIKE } from "./generated/alike.js";

/** A run of letters, digits and their marks. */
interface Part {
  at: number;
  text: string;
  /** The script of the first letter whose script has letters that look like ASCII. Marks are ignored. */
  script: string | undefined;
  isMixed: boolean;
  /** Whether every letter and digit is ASCII or looks like ASCII, and at least one is not ASCII. */
  isAlike: boolean;
  hasAscii: boolean;
}

/** The number of letters of each script, in words that belong to one script only. */
type Around = Map<string, number>;

const PART = /[\p{Alphabetic}\p{N}\p{M}]+/gu;
/** Separators of the parts of an address, a path or a name. */
const JOINT = /^(?:[._\-@/:+~]|:\/\/)$/;
const EAST_ASIAN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}ー々]/u;
const STYLED = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d7ff}]/u;
const FULL_WIDTH = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/;
const OF_ALL = /[\p{Script_Extensions=Common}\p{Script_Extensions=Inherited}\p{M}]/u;
/** A digit of a script other than Latin. */
const LOCAL_DIGIT =
  /(?![\0-\x7f\p{Alphabetic}\p{Script_Extensions=Common}\p{Script_Extensions=Inherited}])\p{N}/u;

const { Latin = "", Common = "", ...FOREIGN } = ALIKE;
/** Latin letters that no language uses in words, and symbols that look like letters. */
const ODD = new Set(Array.from(Latin + Common).filter((c) => !LOCAL_DIGIT.test(c)));
const LIKE_ASCII = new Set(Array.from(Object.values(ALIKE).join("") + LATIN_ALIKE));
/** Scripts that the browser does not know are left out. Their letters always count as foreign. */
const SCRIPTS = Object.keys(FOREIGN).flatMap((name) => {
  try {
    return [{ name, of: new RegExp(`\\p{Script=${name}}`, "u"), fits: new RegExp(`\\p{scx=${name}}`, "u") }];
  } catch {
    return [];
  }
});
const LATIN = /\p{Script=Latin}/u;
/** Scripts that one word may mix: Latin with each East Asian script. */
const TOGETHER = [
  /[\p{scx=Latin}\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}]/u,
  /[\p{scx=Latin}\p{scx=Han}\p{scx=Hangul}]/u,
  /[\p{scx=Latin}\p{scx=Han}\p{scx=Bopomofo}]/u,
  ...SCRIPTS.map(({ fits }) => fits),
];

/** The positions of characters that look like others. */
export function lookalikes(text: string): Set<number> {
  const deceptive = new Set<number>();
  if (/^[\0-\x7f]*$/.test(text)) return deceptive;
  const parts = Array.from(text.matchAll(PART), ({ 0: part, index }) => partOf(part, index));
  const around: Around = new Map();
  for (const part of parts) count(part, around);
  for (const word of words(text, parts)) {
    const isAddress = word.some((part, index) => joins(text, part, word[index + 1]));
    // Computed once for each word, because one word can have very many parts.
    const scripts = new Set(
      word.filter(({ isAlike, isMixed }) => !isAlike && !isMixed).map(({ script }) => script),
    );
    for (const part of word) {
      const isHonest = scripts.has(part.script) || (!isAddress && isOf(part.script, around));
      markDeceptive(part, isHonest, around, deceptive);
    }
  }
  for (const sign of isEastAsian(around) ? FALSE_SIGNS : [...FALSE_SIGNS, WIDE_SIGN]) {
    for (const { index } of text.matchAll(sign)) deceptive.add(index);
  }
  return deceptive;
}

function partOf(text: string, at: number): Part {
  const own = Array.from(text).filter((c) => c > "\x7f" && !/\p{M}/u.test(c));
  const script = own.map(scriptOf).find((name) => name !== undefined);
  const hasAscii = /[\0-\x7f]/.test(text);
  const letters = own.filter((c) => !OF_ALL.test(c));
  if (/[A-Za-z]/.test(text)) letters.push("a");
  const isOther = letters.every((c) => !TOGETHER.some((fits) => fits.test(c)));
  return {
    at,
    text,
    script,
    isMixed: !isOther && !TOGETHER.some((fits) => letters.every((c) => fits.test(c))),
    isAlike: script !== undefined && own.every((c) => LIKE_ASCII.has(c) || STYLED.test(c)),
    hasAscii,
  };
}

/** The script of a letter, if some letters of that script look like ASCII. */
function scriptOf(c: string): string | undefined {
  return SCRIPTS.find(({ of }) => of.test(c))?.name;
}

function count({ text, isMixed, isAlike }: Part, around: Around): void {
  if (isMixed || isAlike) return;
  const add = (name: string) => around.set(name, (around.get(name) ?? 0) + 1);
  for (const c of text.match(/(?!\p{M})\p{Alphabetic}/gu) ?? []) {
    if (EAST_ASIAN.test(c)) add("East Asia");
    else if (LATIN.test(c)) FULL_WIDTH.test(c) || add("Latin");
    const script = scriptOf(c);
    if (script !== undefined) add(script);
  }
}

/** Whether most of the text uses a script, so that a word in it is no surprise. */
function isOf(script: string | undefined, around: Around): boolean {
  const letters = around.get(script ?? "") ?? 0;
  return letters > 0 && letters >= (around.get("Latin") ?? 0);
}

function isEastAsian(around: Around): boolean {
  const letters = around.get("East Asia") ?? 0;
  return letters > 0 && 4 * letters >= (around.get("Latin") ?? 0);
}

function markDeceptive(
  { at, text, ...part }: Part,
  isHonest: boolean,
  around: Around,
  deceptive: Set<number>,
): void {
  const odd = (c: string) => STYLED.test(c) || ODD.has(c);
  const styled = Array.from(text).filter(odd).length;
  const isForged = part.isAlike && !isHonest;
  const isWideForged = part.isMixed || part.hasAscii || !(isEastAsian(around) || EAST_ASIAN.test(text));
  const isDeceptive = (c: string): boolean => {
    if (c <= "\x7f" || /\p{M}/u.test(c)) return false;
    if (FULL_WIDTH.test(c)) return isWideForged;
    if (odd(c)) return part.isMixed || part.hasAscii || styled > 1;
    if (LOCAL_DIGIT.test(c)) return part.hasAscii || isForged;
    return (part.isMixed || isForged) && LIKE_ASCII.has(c) && !LATIN.test(c);
  };
  let index = at;
  for (const c of text) {
    if (isDeceptive(c)) deceptive.add(index);
    index += c.length;
  }
}

/** The parts that are checked together. */
function words(text: string, parts: Part[]): Part[][] {
  const made: Part[][] = [];
  for (const part of parts) {
    const word = made.at(-1);
    const last = word?.at(-1);
    if (last !== undefined && JOINT.test(text.slice(last.at + last.text.length, part.at))) word?.push(part);
    else made.push([part]);
  }
  return made;
}

/** Whether two parts are joined as in an address, a path or a file name. Initials, such as `A. B.`, are not. */
function joins(text: string, left: Part, right: Part | undefined): boolean {
  if (right === undefined) return false;
  const sign = text.charAt(left.at + left.text.length);
  const areLong = Array.from(left.text).length > 1 && Array.from(right.text).length > 1;
  return sign === "." ? areLong : /[@:_]/.test(sign);
}

/** Punctuation beside ASCII that looks like the punctuation of an address, a path or an option. */
const FALSE_SIGNS = [
  // Between digits these mean a fraction and a ratio.
  /(?!(?<=\d).\d)(?:(?<=[\w/.:\-@~])[\u2044\u2215\u29f8\u2571\u27cb\u1735\u2236]|[\u2044\u2215\u29f8\u2571\u27cb\u1735\u2236](?=[\w/.:\-@~]))/gu,
  /(?<=[\w/.:\-@~])[\u2024\ufe52\ua4f8\ua789\ufe55\ufe6b\u037e\u02d0]|[\u2024\ufe52\ua4f8\ua789\ufe55\ufe6b\u037e\u02d0](?=[\w/.:\-@~])/gu,
  /(?:(?<=[A-Za-z])|(?<![\p{Alphabetic}\p{N}]))[\u2010\u2011\u2212\u02d7\u2043\ufe63](?=[A-Za-z])/gu,
];
/** The full-width forms, which are normal in East Asian text. */
const WIDE_SIGN =
  /(?<=[\w/.:\-@~])[\uff0f\uff0e\uff1a\uff20\uff3f\uff0d\uff5e\uff3c]|[\uff0f\uff0e\uff1a\uff20\uff3f\uff0d\uff5e\uff3c](?=[\w/.:\-@~])/gu;
