//! Patterns over tool names: `*` stands for any characters, `?` for one.

use std::fmt;
use std::str::FromStr;

/// A pattern over tool names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// A text that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a pattern of tool names: expected 1 to 64 of the characters a-z A-Z 0-9 _ - * ?")]
pub struct InvalidPattern;

impl Pattern {
    /// Checks the text and keeps it.
    ///
    /// # Errors
    /// [`InvalidPattern`] when it could match no tool's name by its form alone.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'*' | b'?');
        if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
            return Err(InvalidPattern);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it matches a whole name. Goes back to the last `*` only, so it takes at most the product of both lengths.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while let Some(byte) = name.get(n) {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p + 1, n));
                    p += 1;
                }
                Some(b'?') => (p, n) = (p + 1, n + 1),
                Some(expected) if expected == byte => (p, n) = (p + 1, n + 1),
                _ => {
                    let Some((after, from)) = star else { return false };
                    star = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
            }
        }
        pattern.iter().skip(p).all(|byte| *byte == b'*')
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        Self::new(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("pay", "pay", true),
            ("pay", "payment", false),
            ("pay*", "pay", true),
            ("*_delete", "file_delete", true),
            ("*_delete", "file_delete_all", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("?at", "cat", true),
            ("?at", "at", false),
            ("***", "x", true),
        ] {
            assert_eq!(Pattern::new(pattern).expect("a pattern").matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_no_name_could_match_is_no_pattern() {
        for wrong in ["", "a.b", "[ab]", "a b", &"*".repeat(65)] {
            assert!(Pattern::new(wrong).is_err(), "{wrong}");
        }
    }
}
