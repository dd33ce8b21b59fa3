/**
 * Letters that pass for others. The host's rules (docs/hostile-text.md) go by the tables of UTS #39, which a page need not
 * carry for the few texts that come without a `display`; these are coarser, and write out more of honest text rather than less.
 */

/** Letters, digits and marks, and what joins several of them into one address, path or name. Not the letter of a `\n`. */
const WORD = /(?<!\\(?=n))[\p{L}\p{N}\p{M}]+(?:[._\-@/:+~][\p{L}\p{N}\p{M}]+)*/gu;
const LATIN = /\p{Script=Latin}/u;
/** Scripts that stand beside Latin letters in honest words. */
const EAST_ASIAN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}ー々]/u;
/** Latin letters that no language writes its words with: phonetic ones and Roman numerals. */
const ODD = /[\u0250-\u02af\u1d00-\u1dbf\u2160-\u2188]/u;
const DIGIT = /\p{Nd}/u;
/** Signs that pass for those of an address, a path or an option. */
const SIGN =
  /(?<=[!-~])[\u2024\u2044\u2215\u29f8\ua789\u02d0\uff0e\uff0f\uff1a\uff20\ufe52\ufe55](?=[!-~])/gu;
const SCRIPTS = [/\p{Script=Cyrillic}/u, /\p{Script=Greek}/u, /\p{Script=Armenian}/u, /\p{Script=Cherokee}/u];
/** Of those scripts, the letters that one reads as letters of ASCII. */
const ALIKE = new Set(
  "асԁеһіјкӏоԛрѕуѵхԝьгпАВСЕНІЈКМОРЅТХУҮԚԜЗЬЁёЇї" +
    "αογικνρσυχϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ" +
    "օոսհյցզղՕՍԼ" +
    "ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎵᎷᎻᎽᏀᏂᏃᏌᏎᏒᏔᏕᏗᏙᏚᏞᏟᏢᏤᏦᏧᏳᏴ",
);

/** The text with every character that passes for another one as `written` has it. */
export function withoutLookalikes(text: string, written: (c: string) => string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text;
  const isEastAsian = EAST_ASIAN.test(text);
  const around = SCRIPTS.filter((script) => isOf(script, text.match(WORD) ?? []));
  return text
    .replace(WORD, (word) => {
      if (/^[ -~]*$/.test(word)) return word;
      const isMixed = LATIN.test(word.replace(ODD, ""));
      const isAsAround = around.some((script) => script.test(word));
      const isForged = !isMixed && passes(word) && !isAsAround;
      return Array.from(word, (c) => (isLoud(c, { isMixed, isForged, isEastAsian }) ? written(c) : c)).join(
        "",
      );
    })
    .replace(SIGN, written);
}

interface Judged {
  isMixed: boolean;
  isForged: boolean;
  isEastAsian: boolean;
}

function isLoud(c: string, { isMixed, isForged, isEastAsian }: Judged): boolean {
  if (c <= "\x7f" || /\p{M}/u.test(c)) return false;
  if (isStyled(c)) return !(isEastAsian && /[\uff10-\uff5a]/.test(c));
  if (DIGIT.test(c)) return isMixed;
  if (!/\p{L}|\p{Nl}/u.test(c)) return false;
  if (/[\p{Script=Latin}\p{Script=Common}]/u.test(c)) return ODD.test(c);
  return (isMixed && !EAST_ASIAN.test(c)) || isForged;
}

/** Whether it is a form of a letter or digit of ASCII: of full width, or of mathematics. */
function isStyled(c: string): boolean {
  return /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u{1d400}-\u{1d7ff}]/u.test(c);
}

/** Whether most of a text is of a script: words that mix it with Latin letters, or that pass for ASCII, say nothing. */
function isOf(script: RegExp, words: readonly string[]): boolean {
  const letters = (some: readonly string[]) => some.reduce((count, word) => count + word.length, 0);
  const latin = words.filter((word) => LATIN.test(word));
  const foreign = words.filter((word) => script.test(word) && !LATIN.test(word) && !passes(word));
  return foreign.length > 0 && letters(foreign) >= letters(latin);
}

/** Whether every letter of a word is one that passes for a letter of ASCII. */
function passes(word: string): boolean {
  const letters = word.match(/\p{L}/gu) ?? [];
  return letters.length > 0 && letters.every((c) => ALIKE.has(c));
}
