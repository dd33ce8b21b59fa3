//! Values of rules with their own syntax: words, exact numbers, and JSON that is written as TOML.

use policy::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

/// A decimal with at most this many digits keeps its value as a TOML float.
const EXACT_DIGITS: usize = 15;

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleName {
    /// The tool's own declaration applies.
    Allow,
    /// A person must approve.
    Ask,
    /// The call is denied.
    Deny,
}

/// The risk of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RiskName {
    /// Low risk.
    Low,
    /// Medium risk.
    Medium,
    /// High risk.
    High,
    /// Critical risk.
    Critical,
}

/// A channel through which an answer can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelName {
    /// A session of the console.
    Console,
    /// A token in a request.
    Api,
    /// A one-time link.
    Link,
    /// A form that an MCP client shows. It answers questions only.
    McpForm,
}

/// A kind of step of a durable call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// It asks a person.
    Ask,
    /// It needs a decision about a value.
    Approve,
    /// It waits for an external system.
    AwaitExternal,
}

/// An exact number: an integer, a decimal of at most 15 digits, or a string with a JSON number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound(pub Decimal);

/// The forms of a [`Bound`], for the JSON Schema.
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
                return Err(de::Error::custom(format!("expected a number, or a string with a number, not a {kind}")));
            }
        };
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

/// The JSON text of a TOML value.
///
/// # Errors
/// The reason, if JSON has no such value or TOML does not keep it exactly.
pub(in crate::config) fn json(value: &toml::Value) -> Result<String, String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    Ok(match value {
        toml::Value::String(text) => quoted(text),
        toml::Value::Integer(integer) => integer.to_string(),
        toml::Value::Float(float) => exact(*float)?,
        toml::Value::Boolean(boolean) => boolean.to_string(),
        toml::Value::Datetime(_) => return Err("JSON has no dates; write it as a string".to_owned()),
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

/// The decimal number as it was written. A float with more digits has lost its exact value, so it is refused.
fn exact(float: f64) -> Result<String, String> {
    let digits = format!("{float:e}").bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
    match serde_json::Number::from_f64(float) {
        Some(number) if digits <= EXACT_DIGITS => Ok(number.to_string()),
        Some(_) => Err(format!(
            "a decimal of more than {EXACT_DIGITS} digits does not keep its value in TOML; write it as a string: \"0.1234…\""
        )),
        None => Err("expected a finite number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_becomes_json_exactly_or_is_refused() {
        for (toml, expected) in [
            ("1", "1"),
            ("1.50", "1.5"),
            ("1e300", "1e+300"),
            ("true", "true"),
            ("\"a\\\"b\"", r#""a\"b""#),
            ("[1, { a.b = \"c\" }]", r#"[1,{"a":{"b":"c"}}]"#),
            ("2026-01-01", "JSON has no dates; write it as a string"),
            ("inf", "expected a finite number"),
        ] {
            let table: toml::Table = format!("x = {toml}").parse().expect("TOML");
            assert_eq!(json(&table["x"]).unwrap_or_else(|error| error), expected, "{toml}");
        }
        assert!(json(&toml::Value::Float(0.123_456_789_012_345_67)).is_err());
    }
}
