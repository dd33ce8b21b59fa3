//! Arguments from their JSON text, and where in it the decoder stopped.

use serde::de::DeserializeOwned;

use crate::Failure;

/// Reads the arguments of a call. The host has checked them against the schema; what the schema cannot say is refused here, with
/// its place.
pub(crate) fn read<Args: DeserializeOwned>(text: &str) -> Result<Args, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::InvalidArguments(explained(text, &error)))
}

/// What serde_json says, with a JSON Pointer for its line and column. What was set aside before it was read, as for an untagged
/// enum, has the place of the whole.
fn explained(text: &str, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let said = error.to_string();
    let said = said.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&said);
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let read = text.as_bytes().get(..before + column).unwrap_or(text.as_bytes());
    format!("{}: {said}", place(read))
}

/// What is open where a text of JSON breaks off.
enum Open {
    /// An array, and the index of its item.
    Array(usize),
    /// An object, and its latest name, as it is written, with its quotes.
    Object(Option<std::ops::Range<usize>>),
}

/// The JSON Pointer of the value that the beginning of a JSON text ends in or behind.
fn place(text: &[u8]) -> String {
    let mut open: Vec<Open> = Vec::new();
    let (mut at, mut named) = (0, false);
    while let Some(byte) = text.get(at) {
        let begin = at;
        at += 1;
        match (byte, open.last_mut()) {
            (b'[', _) => open.push(Open::Array(0)),
            (b'{', _) => open.push(Open::Object(None)),
            (b']' | b'}', _) => drop(open.pop()),
            (b',', Some(Open::Array(index))) => *index += 1,
            (b'"', last) => {
                while text.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if text.get(at) == Some(&b'\\') { 2 } else { 1 };
                }
                at += 1;
                if let (Some(Open::Object(name)), false) = (last, named) {
                    *name = Some(begin..at.min(text.len()));
                }
            }
            _ => {}
        }
        // Behind a colon comes a value, which may be a text, and no name.
        named = match byte {
            b':' => true,
            b'{' | b',' => false,
            _ => named,
        };
    }
    let steps = open.iter().filter_map(|open| match open {
        Open::Array(index) => Some(index.to_string()),
        Open::Object(name) => name.clone().map(|name| step(text.get(name).unwrap_or_default())),
    });
    let pointer: String = steps.map(|step| format!("/{step}")).collect();
    if pointer.is_empty() { "/".to_owned() } else { pointer }
}

/// A name as a step of a JSON Pointer.
fn step(quoted: &[u8]) -> String {
    serde_json::from_slice::<String>(quoted).unwrap_or_default().replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what is refused matters")]
    struct Order {
        #[serde(rename = "a/b")]
        amount: Option<u8>,
        #[serde(default)]
        lines: Vec<Line>,
        #[serde(default)]
        when: Option<Moment>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only what is refused matters")]
    struct Line {
        price: i32,
        note: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(try_from = "String")]
    struct Moment;

    impl TryFrom<String> for Moment {
        type Error = &'static str;
        fn try_from(text: String) -> Result<Self, &'static str> {
            if text == "now" { Ok(Self) } else { Err("the only moment is now") }
        }
    }

    #[test]
    fn refused_arguments_have_a_place() {
        for (text, said) in [
            (r#"{"a/b": 256}"#, "/a~1b: invalid value: integer `256`, expected u8"),
            (
                r#"{"lines": [{"price": 1}, {"price": "x"}]}"#,
                "/lines/1/price: invalid type: string \"x\", expected i32",
            ),
            (
                r#"{"lines": [{"price": 1, "note": "a,\"{[:"}, {"price": 1.5}]}"#,
                "/lines/1/price: invalid type: floating point `1.5`, expected i32",
            ),
            (r#"{"lines": [{"price": 1, "note": []}]}"#, "/lines/0/note: invalid type: sequence, expected a string"),
            (r#"{"lines": [{"price": 1}, {"note": "n"}]}"#, "/lines/1: missing field `price`"),
            (
                "{\n \"lines\": [\n{\"price\": 1},\n {\"price\":\n {}}]}",
                "/lines/1/price: invalid type: map, expected i32",
            ),
            (r#"{"lines": {}}"#, "/lines: invalid type: map, expected a sequence"),
            (r#"{"a/b": 1, "A/b": 2}"#, "/A~1b: unknown field `A/b`, expected one of `a/b`, `lines`, `when`"),
            (r#"{"a/b": 1, "a/b": 2}"#, "/a~1b: duplicate field `a/b`"),
            (r#"{"when": "later", "lines": []}"#, "/when: the only moment is now"),
            // What refuses after it was read is found by where the decoder then was: here at the end of the whole.
            (r#"{"when": "later"}"#, "/: the only moment is now"),
            (r#"[[1], {"x": 2}]"#, "/0: invalid type: sequence, expected u8"),
            ("3", "/: invalid type: integer `3`, expected struct Order"),
            (r#"{"lines": ["#, "/lines/0: EOF while parsing a list"),
            (r#"{"\ud83d": 1}"#, "/"),
        ] {
            let Err(Failure::InvalidArguments(refused)) = read::<Order>(text) else { panic!("{text} is read") };
            assert!(refused.starts_with(said), "{text}: {refused}");
        }
    }
}
