//! Characters that are invisible, change the direction of text, or have no agreed shape. They are escaped unless a
//! language or an emoji needs them.

use unicode_normalization::char::{canonical_combining_class, is_combining_mark};
use unicode_script::{Script, UnicodeScript as _};

use crate::confusables::is_east_asian;

/// The combining class of viramas. After one, a joiner selects the form of an Indic letter (RFC 5892, A.1 and A.2).
pub(crate) const VIRAMA: u8 = 9;

/// Finds the characters to escape.
pub(crate) fn find(chars: &[char]) -> Vec<bool> {
    let at = |index: usize| chars.get(index).copied();
    let before = |index: usize| index.checked_sub(1).and_then(at);
    let is_invisible = |(index, &c): (usize, &char)| {
        let (prev, next) = (before(index), at(index + 1));
        match c {
            ' '..='~' => false,
            '\u{200c}' | '\u{200d}' if joins(before(index.wrapping_sub(1)), prev, c, next) => false,
            '\u{fe0e}' | '\u{fe0f}' => !chooses_emoji(prev, next),
            '\u{a0}' | '\u{202f}' => !spaces(prev, next),
            '\u{3000}' => !(prev.is_some_and(is_east_asian) || next.is_some_and(is_east_asian)),
            // Blank shapes that no Unicode property identifies.
            '\u{2800}' | '\u{1d159}' | '\u{16fe4}' => true,
            c => is_unprintable(c) || is_ignorable(c),
        }
    };
    chars.iter().enumerate().map(is_invisible).collect()
}

/// Control and format characters, spaces other than the space, separators, and code points without an agreed meaning.
/// The standard library escapes the same ones.
fn is_unprintable(c: char) -> bool {
    // The library also escapes the voiced marks of halfwidth katakana, which are visible.
    !is_combining_mark(c)
        && !matches!(c, '\u{ff9e}' | '\u{ff9f}')
        && matches!(c.escape_debug().nth(1), Some('u' | 'n' | 'r' | 't' | '0'))
}

/// Letters and marks that are invisible. A skeleton (UTS #39, 4) omits them.
fn is_ignorable(c: char) -> bool {
    unicode_security::confusable_detection::skeleton(c.encode_utf8(&mut [0; 4])).next().is_none()
}

/// Whether a joiner has a purpose: it joins emoji, separates letters of one Arabic word, or forms an Indic letter.
fn joins(before: Option<char>, prev: Option<char>, joiner: char, next: Option<char>) -> bool {
    let (Some(prev), Some(next)) = (prev, next) else { return false };
    if joiner == '\u{200d}' && is_emoji(next) {
        return is_emoji(prev) || prev == '\u{fe0f}' && before.is_some_and(is_emoji);
    }
    let script = next.script();
    if canonical_combining_class(prev) == VIRAMA {
        return prev.script() == script && next.is_alphabetic();
    }
    joiner == '\u{200c}'
        && next.is_alphabetic()
        && prev.is_alphabetic()
        && matches!(script, Script::Arabic | Script::Syriac | Script::Mongolian | Script::Nko)
        && prev.script() == script
}

/// Whether a selector follows an emoji, and so selects its form.
fn chooses_emoji(prev: Option<char>, next: Option<char>) -> bool {
    prev.is_some_and(|prev| is_emoji(prev) || is_keycap(prev) && next == Some('\u{20e3}'))
}

/// Whether a no-break space is at a normal position: at punctuation, or at a number.
fn spaces(prev: Option<char>, next: Option<char>) -> bool {
    let punctuation =
        next.is_some_and(|next| matches!(next, '!' | '?' | ':' | ';' | '»' | '%' | '€' | '£' | '–' | '—'));
    let number = prev.is_some_and(|prev| prev.is_ascii_digit()) && next.is_some_and(char::is_alphanumeric);
    punctuation || prev == Some('«') || number
}

/// Whether a character can be the base of a keycap.
pub(crate) fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// Whether a character can be an emoji. The check by blocks is coarser than the Unicode property, but sufficient.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}'
        | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}
