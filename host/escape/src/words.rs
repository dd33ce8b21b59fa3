//! Words that imitate others: words that mix scripts; words of one script that look like ASCII in a text of another
//! script; styled letters among plain ones; punctuation that imitates the separators of an address or option.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_security::mixed_script::AugmentedScriptSet;

use crate::confusables::{is_east_asian_letter, is_fullwidth, is_local_digit, is_odd_latin, is_styled, like_ascii};

/// A run of letters, digits and their marks.
struct Part {
    at: Range<usize>,
    /// The script of its letters, if they are not Latin.
    script: Option<Script>,
    /// Whether it mixes scripts beyond the highly restrictive level of UTS #39, which allows Latin with East Asian
    /// scripts.
    mixed: bool,
    /// Whether all its letters and digits are ASCII or look like it, and at least one is foreign.
    all_alike: bool,
    ascii: bool,
}

/// The number of letters of each script in the words of the text that are certainly of that script.
#[derive(Default)]
struct Around {
    scripts: HashMap<Script, usize>,
    latin: usize,
    east_asian: usize,
}

impl Around {
    /// Whether the text is mostly of this script, so that a word of it is expected.
    fn is_of(&self, script: Option<Script>) -> bool {
        let letters = script.and_then(|script| self.scripts.get(&script)).copied().unwrap_or_default();
        letters > 0 && letters >= self.latin
    }

    fn is_east_asian(&self) -> bool {
        self.east_asian > 0 && 4 * self.east_asian >= self.latin
    }
}

/// Finds the characters to escape.
pub(crate) fn find(chars: &[char], escaped: &mut [bool]) {
    if chars.iter().all(char::is_ascii) {
        return;
    }
    let (parts, around) = read(chars);
    for word in parts.chunk_by(|left, right| is_one_word(chars, left, right)) {
        let address = is_address(chars, word);
        // Computed once per word, because one word can have very many parts.
        let scripts: HashSet<_> =
            word.iter().filter(|part| !part.all_alike && !part.mixed).map(|part| part.script).collect();
        for part in word {
            let own = scripts.contains(&part.script);
            let honest = if address { own } else { own || around.is_of(part.script) };
            check_part(part, honest, &around, &chars[part.at.clone()], &mut escaped[part.at.clone()]);
        }
    }
    for (index, escaped) in escaped.iter_mut().enumerate().take(chars.len()) {
        *escaped |= is_false_punctuation(chars, index, &around);
    }
}

/// Finds the characters of a part to escape.
fn check_part(part: &Part, honest: bool, around: &Around, chars: &[char], escaped: &mut [bool]) {
    let styled = chars.iter().filter(|c| is_styled(**c) || is_odd_latin(**c) && like_ascii(**c)).count();
    let east_asian = around.is_east_asian() || chars.iter().any(|c| is_east_asian_letter(*c));
    for (c, escaped) in chars.iter().zip(escaped) {
        *escaped |= match *c {
            c if c.is_ascii() || is_combining_mark(c) => false,
            c if is_fullwidth(c) => part.mixed || part.ascii || !east_asian,
            c if is_styled(c) || is_odd_latin(c) => like_ascii(c) && (part.mixed || part.ascii || styled > 1),
            c if is_local_digit(c) => part.ascii || part.all_alike && !honest,
            c => (part.mixed || part.all_alike && !honest) && c.script() != Script::Latin && like_ascii(c),
        };
    }
}

/// Splits a text into parts and counts its scripts.
fn read(chars: &[char]) -> (Vec<Part>, Around) {
    let (mut parts, mut around, mut begin) = (Vec::new(), Around::default(), 0);
    for run in chars.chunk_by(|left, right| is_of_word(*left) == is_of_word(*right)) {
        let at = begin..begin + run.len();
        begin = at.end;
        if is_of_word(run[0]) {
            let part = part(at, chars);
            count(&part, run, &mut around);
            parts.push(part);
        }
    }
    (parts, around)
}

fn part(at: Range<usize>, chars: &[char]) -> Part {
    let (mut all, mut without_latin) = (AugmentedScriptSet::default(), AugmentedScriptSet::default());
    let (mut script, mut foreign, mut all_alike, mut ascii) = (None, false, true, false);
    for &c in &chars[at.clone()] {
        if c.is_ascii() {
            ascii = true;
            if c.is_ascii_alphabetic() {
                all.intersect_with(c.into());
            }
            continue;
        }
        if is_combining_mark(c) {
            continue;
        }
        all.intersect_with(c.into());
        match c.script() {
            Script::Latin => {}
            own => {
                without_latin.intersect_with(c.into());
                if !matches!(own, Script::Common | Script::Inherited) {
                    foreign = true;
                    script = script.or(Some(own));
                }
            }
        }
        // A Latin letter with marks belongs to a language and is not like ASCII.
        all_alike &= like_ascii(c);
    }
    let together = without_latin.jpan || without_latin.kore || without_latin.hanb;
    let mixed = all.is_empty() && !together;
    Part { at, script, mixed, all_alike: all_alike && foreign, ascii }
}

fn count(part: &Part, chars: &[char], around: &mut Around) {
    if part.mixed || part.all_alike {
        return;
    }
    for c in chars.iter().filter(|c| c.is_alphabetic() && !is_combining_mark(**c)) {
        match c.script() {
            _ if is_east_asian_letter(*c) => around.east_asian += 1,
            Script::Latin if is_fullwidth(*c) => {}
            Script::Latin => around.latin += 1,
            script => *around.scripts.entry(script).or_default() += 1,
        }
        if is_east_asian_letter(*c) {
            *around.scripts.entry(c.script()).or_default() += 1;
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// Whether only one separator of names or addresses is between two parts.
fn is_one_word(chars: &[char], left: &Part, right: &Part) -> bool {
    let between = &chars[left.at.end..right.at.start];
    matches!(between, ['.' | '_' | '-' | '@' | '/' | ':' | '+' | '~'] | [':', '/', '/'])
}

/// Whether a word has the form of an address, a path or a file name. Then the surrounding text does not make it honest.
/// Initials, which are letters and points, are not addresses.
fn is_address(chars: &[char], word: &[Part]) -> bool {
    let long = |part: &Part| part.at.len() > 1;
    word.windows(2).any(|pair| match chars[pair[0].at.end] {
        '.' => long(&pair[0]) && long(&pair[1]),
        sign => matches!(sign, '@' | ':' | '_'),
    })
}

/// Whether a character imitates a separator at a position where it would be taken for one.
fn is_false_punctuation(chars: &[char], index: usize, around: &Around) -> bool {
    let prev = index.checked_sub(1).map(|prev| chars[prev]);
    let next = chars.get(index + 1).copied();
    let plain = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || "/.:-_@~".contains(c));
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
    match chars[index] {
        // Between digits these are normal signs of fractions and ratios.
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{2571}' | '\u{27cb}' | '\u{1735}' | '\u{2236}' => {
            (plain(prev) || plain(next)) && !(digit(prev) && digit(next))
        }
        '\u{2024}' | '\u{fe52}' | '\u{a4f8}' | '\u{a789}' | '\u{fe55}' | '\u{fe6b}' | '\u{37e}' | '\u{2d0}' => {
            plain(prev) || plain(next)
        }
        '\u{ff0f}' | '\u{ff0e}' | '\u{ff1a}' | '\u{ff20}' | '\u{ff3f}' | '\u{ff0d}' | '\u{ff5e}' | '\u{ff3c}' => {
            !around.is_east_asian() && (plain(prev) || plain(next))
        }
        '\u{2010}' | '\u{2011}' | '\u{2212}' | '\u{2d7}' | '\u{2043}' | '\u{fe63}' => {
            let option = !prev.is_some_and(char::is_alphanumeric) && letter(next);
            letter(prev) && letter(next) || option
        }
        _ => false,
    }
}
