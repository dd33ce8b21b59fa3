//! The values of rules that have a form of their own: words, numbers, and JSON that is written as TOML.

use policy::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

/// The most digits of which every decimal number survives as a TOML float.
const EXACT_DIGITS: usize = 15;

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleName {
    /// As the tool declares.
    Allow,
    /// A person must approve.
    Ask,
    /// Every call ends denied.
    Deny,
}

/// How much is at stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RiskName {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// Much.
    High,
    /// Everything.
    Critical,
}

/// An exact number: an integer, a decimal of at most 15 digits, or a text that holds a number as JSON writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound(pub Decimal);

/// How a [`Bound`] may be written, for the schema of the file.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum BoundForm {
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match toml::Value::deserialize(deserializer)? {
            toml::Value::Integer(integer) => integer.to_string(),
            toml::Value::Float(float) => exact(float).map_err(de::Error::custom)?,
            toml::Value::String(text) => text,
            other => {
                let kind = other.type_str();
                return Err(de::Error::custom(format!("expected a number, or a text that holds one, not a {kind}")));
            }
        };
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

/// The JSON text of a TOML value.
///
/// # Errors
/// Why JSON cannot say it, or TOML cannot say it exactly.
pub(in crate::config) fn json(value: &toml::Value) -> Result<String, String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    Ok(match value {
        toml::Value::String(text) => quoted(text),
        toml::Value::Integer(integer) => integer.to_string(),
        toml::Value::Float(float) => exact(*float)?,
        toml::Value::Boolean(boolean) => boolean.to_string(),
        toml::Value::Datetime(_) => return Err("JSON has no dates; write it as a text".to_owned()),
        toml::Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(json).collect();
            format!("[{}]", items?.join(","))
        }
        toml::Value::Table(members) => {
            let member = |(name, value): (&String, &toml::Value)| Ok(format!("{}:{}", quoted(name), json(value)?));
            let members: Result<Vec<_>, String> = members.iter().map(member).collect();
            format!("{{{}}}", members?.join(","))
        }
    })
}

/// The decimal number that a TOML float was written as. One with more digits was changed when it was read, and is refused.
fn exact(float: f64) -> Result<String, String> {
    let digits = format!("{float:e}").bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
    match serde_json::Number::from_f64(float) {
        Some(number) if digits <= EXACT_DIGITS => Ok(number.to_string()),
        Some(_) => Err(format!(
            "a decimal of more than {EXACT_DIGITS} digits does not keep its value in TOML; write it as a text: \"0.1234…\""
        )),
        None => Err("expected a finite number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_becomes_json_exactly_or_not_at_all() {
        for (toml, expected) in [
            ("1", "1"),
            ("1.50", "1.5"),
            ("1e300", "1e+300"),
            ("true", "true"),
            ("\"a\\\"b\"", r#""a\"b""#),
            ("[1, { a.b = \"c\" }]", r#"[1,{"a":{"b":"c"}}]"#),
            ("2026-01-01", "JSON has no dates; write it as a text"),
            ("inf", "expected a finite number"),
        ] {
            let table: toml::Table = format!("x = {toml}").parse().expect("TOML");
            assert_eq!(json(&table["x"]).unwrap_or_else(|error| error), expected, "{toml}");
        }
        assert!(json(&toml::Value::Float(0.123_456_789_012_345_67)).is_err());
    }
}
