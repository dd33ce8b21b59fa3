//! Patterns: `*` stands for any characters or none, `?` for exactly one, every other character for itself.
//!
//! Characters are Unicode code points and are compared as they are: case counts, and two spellings of a letter that look
//! the same are two texts. There is no escape; a literal `*` is matched by `?`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest pattern over values, in characters.
const LONGEST: usize = 256;

/// A pattern over texts in arguments: 1 to 256 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Arc<str>);

/// A pattern over the names of tools or plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Glob);

/// A pattern over the names of callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerPattern(Glob);

/// A text that is not a pattern of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// It could match no name of a tool or plugin by its form alone.
    #[error("not a pattern of names: expected 1 to 64 of the characters a-z A-Z 0-9 _ - * ?")]
    Name,
    /// It could match no caller's name by its form alone.
    #[error("not a pattern of callers: expected 1 to 128 of the characters a-z A-Z 0-9 _ . : - @ / * ?")]
    Caller,
    /// It is empty or too long.
    #[error("not a pattern of texts: expected 1 to {LONGEST} characters")]
    Glob,
}

impl Glob {
    /// Checks the text and keeps it.
    ///
    /// # Errors
    /// [`InvalidPattern::Glob`].
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let fits = !text.is_empty() && text.chars().count() <= LONGEST;
        if fits { Ok(Self(text.into())) } else { Err(InvalidPattern::Glob) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it matches one text only.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether it matches the whole text. Takes time in proportion to the text; a part between two `*` that has a `?` in it
    /// may take its own length times that.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = strip(text, first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        // The leftmost place of each part leaves the most for those behind it, so nothing is ever tried again.
        for part in parts {
            let Some(behind) = after(rest, part) else { return false };
            rest = behind;
        }
        let mut end = rest.chars().rev();
        last.chars().rev().all(|expected| end.next().is_some_and(|c| fits(expected, c)))
    }
}

fn fits(expected: char, c: char) -> bool {
    expected == '?' || expected == c
}

/// What is behind the part at the beginning of a text.
fn strip<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    part.chars().all(|expected| rest.next().is_some_and(|c| fits(expected, c))).then_some(rest.as_str())
}

/// What is behind the first place of a part in a text.
fn after<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    if !part.contains('?') {
        return text.split_once(part).map(|(_, behind)| behind);
    }
    text.char_indices().find_map(|(at, _)| strip(&text[at..], part))
}

impl Pattern {
    /// Checks the text and keeps it.
    ///
    /// # Errors
    /// [`InvalidPattern::Name`].
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'*' | b'?');
        if text.len() > 64 || !text.bytes().all(allowed) {
            return Err(InvalidPattern::Name);
        }
        Glob::new(text).map(Self).map_err(|_| InvalidPattern::Name)
    }

    /// The pattern that matches every name.
    #[must_use]
    pub fn any() -> Self {
        Self(Glob("*".into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it matches one name only.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.0.is_exact()
    }

    /// Whether it matches a whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }
}

impl CallerPattern {
    /// Checks the text and keeps it.
    ///
    /// # Errors
    /// [`InvalidPattern::Caller`].
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let special = |b: u8| matches!(b, b'_' | b'.' | b':' | b'-' | b'@' | b'/' | b'*' | b'?');
        if text.len() > 128 || !text.bytes().all(|b| b.is_ascii_alphanumeric() || special(b)) {
            return Err(InvalidPattern::Caller);
        }
        Glob::new(text).map(Self).map_err(|_| InvalidPattern::Caller)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it matches a whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }
}

macro_rules! written {
    ($($pattern:ident),+) => {$(
        impl FromStr for $pattern {
            type Err = InvalidPattern;

            fn from_str(text: &str) -> Result<Self, InvalidPattern> {
                Self::new(text)
            }
        }

        impl fmt::Display for $pattern {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+};
}

written!(Glob, Pattern, CallerPattern);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("pay", "pay", true),
            ("pay", "payment", false),
            ("pay", "Pay", false),
            ("pay*", "pay", true),
            ("*_delete", "file_delete", true),
            ("*_delete", "file_delete_all", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*ab*ba*", "aba", false),
            ("*ab*ba*", "abba", true),
            ("?at", "cat", true),
            ("?at", "at", false),
            ("*?", "", false),
            ("*a?c*", "xabacac", false),
            ("*a?c*", "xababcx", true),
            ("***", "x", true),
            ("?", "ü", true),
            ("?", "u\u{308}", false),
            ("ü*", "u\u{308}", false),
            ("*\n*", "a\nb", true),
        ] {
            assert_eq!(Glob::new(pattern).expect("a pattern").matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn pattern_that_matches_no_name_is_refused() {
        for wrong in ["", "a.b", "[ab]", "a b", &"*".repeat(65)] {
            assert_eq!(Pattern::new(wrong), Err(InvalidPattern::Name), "{wrong}");
        }
        for wrong in ["", "a b", "ü", &"*".repeat(129)] {
            assert_eq!(CallerPattern::new(wrong), Err(InvalidPattern::Caller), "{wrong}");
        }
        assert_eq!(Glob::new(""), Err(InvalidPattern::Glob));
        assert_eq!(Glob::new(&"ü".repeat(257)), Err(InvalidPattern::Glob));
        assert!(Glob::new(&"ü".repeat(256)).is_ok());
    }

    proptest::proptest! {
        /// The plain definition, tried in every way.
        #[test]
        fn matching_follows_the_definition(pattern in "[ab?*]{1,8}", text in "[ab]{0,10}") {
            fn defined(pattern: &[u8], text: &[u8]) -> bool {
                match (pattern, text) {
                    ([], []) => true,
                    ([b'*', after @ ..], _) => (0..=text.len()).any(|skip| defined(after, &text[skip..])),
                    ([b'?', after @ ..], [_, rest @ ..]) => defined(after, rest),
                    ([first, after @ ..], [c, rest @ ..]) => first == c && defined(after, rest),
                    _ => false,
                }
            }
            let glob = Glob::new(&pattern).expect("a pattern");
            proptest::prop_assert_eq!(glob.matches(&text), defined(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
