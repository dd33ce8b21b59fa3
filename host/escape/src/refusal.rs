//! The messages of the library serde in plain words: people read them who write a configuration or a request.

/// A message of serde, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// A key or a parameter that does not exist.
    UnknownName { name: &'a str, known: Vec<&'a str> },
    /// A word that is not one of the known ones.
    UnknownWord { word: &'a str, known: Vec<&'a str> },
    /// A key or a parameter that is missing.
    Missing { name: &'a str },
    /// A key or a parameter that is given twice.
    Twice { name: &'a str },
    /// A value of another kind or out of its range.
    Wrong { given: String, expected: String },
    /// A message that is in plain words already.
    Other(&'a str),
}

impl<'a> Refusal<'a> {
    /// Takes a message apart.
    #[must_use]
    pub fn of(message: &'a str) -> Self {
        let quoted = |rest: &'a str| rest.split('`').nth(1).unwrap_or_default();
        let known = |rest: &'a str| rest.split('`').skip(3).step_by(2).collect();
        if message.starts_with("unknown field ") {
            return Self::UnknownName { name: quoted(message), known: known(message) };
        }
        if message.starts_with("unknown variant ") {
            return Self::UnknownWord { word: quoted(message), known: known(message) };
        }
        if message.starts_with("missing field ") {
            return Self::Missing { name: quoted(message) };
        }
        if message.starts_with("duplicate field ") {
            return Self::Twice { name: quoted(message) };
        }
        let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
        if let Some((given, expected)) = wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
            return Self::Wrong { given: value(given), expected: kind(expected) };
        }
        match message {
            "invalid socket address syntax" => Self::of_text(kind("socket address")),
            "provided string was not `true` or `false`" => Self::of_text(kind("a boolean")),
            "invalid digit found in string" | "cannot parse integer from empty string" => Self::of_text(kind("u64")),
            "number too large to fit in target type" => Self::of_text("a smaller number".to_owned()),
            other => Self::Other(other),
        }
    }

    /// A text that could not be parsed. The message does not repeat it.
    fn of_text(expected: String) -> Self {
        Self::Wrong { given: String::new(), expected }
    }
}

/// Names in a list.
#[must_use]
pub fn names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A value as serde describes it: integer `5`, string "a", sequence.
fn value(given: &str) -> String {
    match given {
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        "null" | "unit value" => "nothing".to_owned(),
        _ => match given.split_once(['`', '"']) {
            Some(("string ", _)) => given.trim_start_matches("string ").to_owned(),
            Some((_, number)) => number.trim_end_matches('`').to_owned(),
            None => given.to_owned(),
        },
    }
}

/// The name of the kind of value that serde expects.
fn kind(expected: &str) -> String {
    match expected {
        "socket address" => "an IP address and a port, such as \"127.0.0.1:7420\"",
        "a string" | "str" | "string" | "a borrowed string" => "a text in quotes",
        "path string" => "a path in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        _ if expected.starts_with("a nonzero ") => "a whole number above 0",
        _ if expected.starts_with("struct ") => "a table",
        own => own,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(given: &str, expected: &str) -> Refusal<'static> {
        Refusal::Wrong { given: given.to_owned(), expected: expected.to_owned() }
    }

    #[test]
    fn messages_are_taken_apart() {
        for (message, expected) in [
            ("unknown field `a`, expected one of `b`, `c`", Refusal::UnknownName { name: "a", known: vec!["b", "c"] }),
            ("unknown field `a`, there are no fields", Refusal::UnknownName { name: "a", known: vec![] }),
            ("unknown variant `a`, expected `b` or `c`", Refusal::UnknownWord { word: "a", known: vec!["b", "c"] }),
            ("missing field `a`", Refusal::Missing { name: "a" }),
            ("duplicate field `a`", Refusal::Twice { name: "a" }),
            ("invalid type: integer `5`, expected a string", wrong("5", "a text in quotes")),
            ("invalid type: floating point `1.5`, expected i64", wrong("1.5", "a whole number")),
            ("invalid type: string \"x\", expected a boolean", wrong("\"x\"", "true or false")),
            ("invalid type: map, expected a sequence", wrong("a table", "a list")),
            ("invalid type: boolean `true`, expected struct Limits", wrong("true", "a table")),
            ("invalid value: integer `0`, expected a nonzero u64", wrong("0", "a whole number above 0")),
            ("invalid value: integer `-1`, expected usize", wrong("-1", "a whole number from 0")),
            ("invalid type: integer `5`, expected true, or a table", wrong("5", "true, or a table")),
            ("invalid digit found in string", wrong("", "a whole number from 0")),
            ("the value is 5, and it must be 6", Refusal::Other("the value is 5, and it must be 6")),
        ] {
            assert_eq!(Refusal::of(message), expected, "{message}");
        }
        assert_eq!(names(&["a", "b"]), "`a`, `b`");
    }

    /// The messages come from serde itself, so an update that changes them fails here.
    #[test]
    fn messages_of_serde_are_known() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            _number: u64,
            _word: Option<Word>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Word {
            Ask,
            Deny,
        }
        assert!(matches!(serde_json::from_str::<[Word; 2]>(r#"["ask", "deny"]"#), Ok([Word::Ask, Word::Deny])));
        for (text, expected) in [
            ("{\"a\": 1}", Refusal::UnknownName { name: "a", known: vec!["_number", "_word"] }),
            ("{\"_number\": 1, \"_word\": \"b\"}", Refusal::UnknownWord { word: "b", known: vec!["ask", "deny"] }),
            ("{}", Refusal::Missing { name: "_number" }),
            ("{\"_number\": 1, \"_number\": 1}", Refusal::Twice { name: "_number" }),
            ("{\"_number\": \"1\"}", wrong("\"1\"", "a whole number from 0")),
            ("{\"_number\": -1}", wrong("-1", "a whole number from 0")),
            ("5", wrong("5", "a table")),
        ] {
            let error = serde_json::from_str::<Table>(text).expect_err(text).to_string();
            let message = error.split(" at line ").next().unwrap_or_default();
            assert_eq!(Refusal::of(message), expected, "{error}");
        }
    }
}
