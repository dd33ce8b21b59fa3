//! The JSON parser and `serde_json` accept the same texts, apart from duplicate keys, and read the same values.

use domain::json::{self, Json, check_body};
use serde_json::Value;

/// The host reads stored numbers of any size. `serde_json` refuses those beyond a double, and rounds twice, so it may also refuse
/// numbers that are within a few units in the last place of the largest double.
const AT_LIMIT: f64 = f64::MAX * (1.0 - 1e-15);

/// `serde_json` reads an object that begins with this key as a value of its own.
const OWN_KEY: &str = "$serde_json::private::RawValue";

/// A JSON text.
pub fn json(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let json = Json::unchecked(text);
    let read = json.value();
    assert_eq!(
        Json::unchecked(text).check_stored().err(),
        read.as_ref().err().cloned(),
        "one parser, one answer: {text:?}"
    );
    if read.as_ref().is_ok_and(|value| value.to_json().contains(OWN_KEY)) {
        return;
    }
    match (read, serde_json::from_str::<Value>(text)) {
        (Ok(value), Ok(other)) => {
            assert!(!has_duplicates(text, &other), "a duplicate key was overlooked: {text:?}");
            let written = value.to_json();
            assert_eq!(serde_json::from_str::<Value>(&written).ok().as_ref(), Some(&other), "{text:?}");
            outside(text, &other);
        }
        (Ok(_), Err(error)) => {
            let is_too_large = is_out_of_range(&error) && numbers(text).any(|number| number.abs() >= AT_LIMIT);
            assert!(is_too_large, "serde_json refuses {text:?}: {error}");
        }
        (Err(malformed), Ok(other)) => {
            assert!(malformed.is_duplicate() && has_duplicates(text, &other), "{malformed}: {text:?}");
        }
        (Err(_), Err(_)) => {}
    }
}

/// A text from outside may be less deep than a stored one, and the body of a request lies between the two.
fn outside(text: &str, other: &Value) {
    let is_accepted = Json::parse(text).is_ok();
    assert_eq!(json::Value::parse(text).is_ok(), is_accepted, "both have the same limits: {text:?}");
    match check_body(text, &[]) {
        Ok(members) => {
            let present = other.as_object().map(|all| all.iter().filter(|(_, value)| !value.is_null()));
            let present = present.map(|all| all.map(|(name, _)| name.as_str()).collect::<Vec<_>>());
            assert_eq!(members.as_ref().map(|names| names.iter().map(|name| &**name).collect()), present, "{text:?}");
        }
        Err(malformed) => assert!(!is_accepted, "{malformed}: {text:?}"),
    }
}

fn is_out_of_range(error: &impl ToString) -> bool {
    error.to_string().starts_with("number out of range")
}

/// The numbers of a text, rounded once. Those in its strings do no harm.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    text.split(|c: char| !matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-')).filter_map(|part| part.parse().ok())
}

/// Whether a text, which is JSON, has more members than its value: `serde_json` keeps the last of two equal keys.
fn has_duplicates(text: &str, value: &Value) -> bool {
    let (mut colons, mut in_string, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b':' if !in_string => colons += 1,
            _ => {}
        }
    }
    colons > members(value)
}

fn members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members).sum(),
        Value::Object(all) => all.len() + all.values().map(members).sum::<usize>(),
        _ => 0,
    }
}
