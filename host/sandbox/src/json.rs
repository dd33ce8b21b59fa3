//! Whether a text of a guest is JSON that others can read.

use serde::de::IgnoredAny;

/// Values nested deeper than this are refused: parsers of callers stop here or sooner, or overflow their stack.
const DEPTH: usize = 100;

/// Checks that the text is one JSON value (RFC 8259) and not nested too deeply.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(text: &str) -> Result<(), String> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string())?;
    if depth(text) > DEPTH { Err(format!("nested more than {DEPTH} levels deep")) } else { Ok(()) }
}

/// The depth of a text that is known to be JSON, so brackets outside of strings are paired.
fn depth(text: &str) -> usize {
    let (mut depth, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_and_nothing_around_it() {
        for good in ["1", " {\"a\":[\"\\\"[\"]} ", "null", "\"\""] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "1 2", "{a:1}", "[1,]", "nul", "'a'", "\u{feff}1"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth_is_that_of_the_value_and_not_of_its_strings() {
        assert_eq!(depth(r#"{"a":"[[[[","b\"[":[1]}"#), 2);
        assert!(check(&format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH))).is_ok());
        assert!(check(&format!("{}{}", "[".repeat(200_000), "]".repeat(200_000))).is_err());
    }
}
