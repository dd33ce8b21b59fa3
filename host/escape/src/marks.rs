//! Combining marks. Languages put a few of them on a letter. Too many marks, marks that strike a letter out, and marks
//! without a letter of their own are escaped.

use unicode_normalization::char::is_combining_mark;

use crate::invisible::is_keycap;

/// The maximum number of marks on one letter (UTS #39, 5.4).
const MAX_MARKS: usize = 4;

/// Finds the marks to escape.
pub(crate) fn find(chars: &[char], escaped: &mut [bool]) {
    let mut on_base = 0;
    for (index, &c) in chars.iter().enumerate() {
        if !is_combining_mark(c) {
            on_base = 0;
            continue;
        }
        on_base += 1;
        let prev = index.checked_sub(1).map(|prev| (chars[prev], escaped[prev]));
        let twice = prev.is_some_and(|(prev, _)| prev == c);
        if is_selector(c) {
            // `invisible` decides about selectors.
        } else if c == '\u{20e3}' {
            let base = chars[..index].iter().rev().find(|c| **c != '\u{fe0f}');
            escaped[index] |= !base.is_some_and(|base| is_keycap(*base));
        } else if on_base > MAX_MARKS
            || twice
            || covers(c)
            || !prev.is_some_and(|(prev, escaped)| carries(prev, escaped))
        {
            escaped[index] = true;
        }
    }
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether a mark covers or encloses its letter.
fn covers(c: char) -> bool {
    matches!(c, '\u{334}'..='\u{338}' | '\u{488}' | '\u{489}' | '\u{20d2}' | '\u{20d3}' | '\u{20d8}'..='\u{20da}'
        | '\u{20dd}'..='\u{20e0}' | '\u{20e2}'..='\u{20e6}' | '\u{20ea}' | '\u{20eb}' | '\u{a670}'..='\u{a672}'
        | '\u{1abe}' | '\u{fe20}'..='\u{fe2f}')
}

/// Whether a character can carry a mark. An escaped one cannot, because the mark would move to the closing brace.
fn carries(c: char, escaped: bool) -> bool {
    !escaped && !c.is_whitespace() && !c.is_ascii_punctuation() && !c.is_control()
}
