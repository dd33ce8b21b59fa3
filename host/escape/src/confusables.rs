//! Whether a reader takes a character for an ASCII letter or digit, by the confusables of UTS #39.

use unicode_script::{Script, ScriptExtension, UnicodeScript as _};
use unicode_security::GeneralSecurityProfile as _;
use unicode_security::confusable_detection::skeleton;

/// Whether a character that is not ASCII looks like an ASCII letter or digit.
///
/// For other scripts, marks are ignored: a reader takes the mark of `ё` for an accent on `e`. For Latin letters, marks
/// count, as they do in the languages that use them: `é` is not `e`.
pub(crate) fn like_ascii(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    if is_styled(c) || matches!(c, 'к' | 'К' | 'κ' | 'Κ' | 'ĸ') {
        return true;
    }
    let marks_count = c.script() == Script::Latin;
    let mut any = false;
    for shape in skeleton(c.encode_utf8(&mut [0; 4])) {
        if unicode_normalization::char::is_combining_mark(shape) && !marks_count {
            continue;
        }
        if !shape.is_ascii_alphanumeric() {
            return false;
        }
        any = true;
    }
    any
}

/// Fullwidth and mathematical forms of letters and digits.
pub(crate) fn is_styled(c: char) -> bool {
    is_fullwidth(c) || matches!(c, '\u{1d400}'..='\u{1d7ff}')
}

/// Fullwidth forms of letters and digits, which are normal in East Asian text.
pub(crate) fn is_fullwidth(c: char) -> bool {
    matches!(c, '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}

/// Whether a Latin letter occurs in the words of no language: phonetic letters, Roman numerals, letterlike symbols.
pub(crate) fn is_odd_latin(c: char) -> bool {
    !c.is_ascii() && matches!(c.script(), Script::Latin | Script::Common) && !c.identifier_allowed()
}

/// Whether a character belongs to Chinese, Japanese or Korean text, including punctuation and fullwidth forms.
pub(crate) fn is_east_asian(c: char) -> bool {
    matches!(c, '\u{3001}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}') || is_east_asian_letter(c)
}

/// Whether a character is a Chinese, Japanese or Korean letter.
pub(crate) fn is_east_asian_letter(c: char) -> bool {
    matches!(c.script(), Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul | Script::Bopomofo)
        || matches!(c, 'ー' | '々')
}

/// Whether a digit belongs only to certain scripts.
pub(crate) fn is_local_digit(c: char) -> bool {
    let ext = ScriptExtension::from(c);
    !c.is_ascii() && c.is_numeric() && !c.is_alphabetic() && !ext.is_common() && !ext.is_inherited()
}
