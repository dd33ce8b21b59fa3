//! Patterns: `*` matches any number of characters, `?` exactly one, and every other character itself.
//!
//! Characters are Unicode code points and are compared exactly: case matters, and two encodings of the same visible
//! letter are different. There is no escape; `?` also matches a literal `*`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The maximum number of characters of a pattern over values.
const MAX_PATTERN: usize = 256;

/// A pattern over texts in arguments: 1 to 256 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Arc<str>);

/// A pattern over the names of tools or plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Glob);

/// A pattern over the names of plugins. With `mcp:` before it, it is over the names of upstream MCP servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginPattern(pub Pattern);

impl FromStr for PluginPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let Some(upstream) = text.strip_prefix("mcp:") else { return Pattern::new(text).map(Self) };
        let Pattern(of_upstreams) = Pattern::new(upstream)?;
        Ok(Self(Pattern(Glob(format!("mcp:{}", of_upstreams.as_str()).into()))))
    }
}

/// A pattern over the names of callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerPattern(Glob);

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// No tool or plugin name could match it.
    #[error("not a pattern of names: expected 1 to 64 of the characters a-z A-Z 0-9 _ - * ?")]
    Name,
    /// No caller's name could match it.
    #[error("not a pattern of callers: expected 1 to 128 of the characters a-z A-Z 0-9 _ . : - @ / * ?")]
    Caller,
    /// Empty or too long.
    #[error("not a pattern of texts: expected 1 to {MAX_PATTERN} characters")]
    Glob,
}

impl Glob {
    /// # Errors
    /// [`InvalidPattern::Glob`].
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let fits = !text.is_empty() && text.chars().count() <= MAX_PATTERN;
        if fits { Ok(Self(text.into())) } else { Err(InvalidPattern::Glob) }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it matches only one text.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether it matches the whole text. Takes time in proportion to the text. A part with `?` between two `*` can
    /// multiply that by its own length.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = strip(text, first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        // Matching each part at its leftmost position leaves the most text for the later parts, so no backtracking is
        // needed.
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

/// The rest of a text that begins with the part.
fn strip<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    part.chars().all(|expected| rest.next().is_some_and(|c| fits(expected, c))).then_some(rest.as_str())
}

/// The rest of a text after the first occurrence of the part.
fn after<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    if !part.contains('?') {
        return text.split_once(part).map(|(_, behind)| behind);
    }
    text.char_indices().find_map(|(at, _)| strip(&text[at..], part))
}

impl Pattern {
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

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it matches only one name.
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
    /// # Errors
    /// [`InvalidPattern::Caller`].
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let special = |b: u8| matches!(b, b'_' | b'.' | b':' | b'-' | b'@' | b'/' | b'*' | b'?');
        if text.len() > 128 || !text.bytes().all(|b| b.is_ascii_alphanumeric() || special(b)) {
            return Err(InvalidPattern::Caller);
        }
        Glob::new(text).map(Self).map_err(|_| InvalidPattern::Caller)
    }

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
    fn a_pattern_that_no_name_could_match_is_refused() {
        for wrong in ["", "a.b", "[ab]", "a b", &"*".repeat(65)] {
            assert_eq!(Pattern::new(wrong), Err(InvalidPattern::Name), "{wrong}");
            assert_eq!(format!("mcp:{wrong}").parse::<PluginPattern>(), Err(InvalidPattern::Name), "{wrong}");
        }
        for wrong in ["", "a b", "ü", &"*".repeat(129)] {
            assert_eq!(CallerPattern::new(wrong), Err(InvalidPattern::Caller), "{wrong}");
        }
        assert_eq!(Glob::new(""), Err(InvalidPattern::Glob));
        assert_eq!(Glob::new(&"ü".repeat(257)), Err(InvalidPattern::Glob));
        assert!(Glob::new(&"ü".repeat(256)).is_ok());
    }

    proptest::proptest! {
        /// Compares with the plain recursive definition.
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
