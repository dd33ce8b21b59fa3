//! The arguments that a request over HTTP repeats in its headers. The schema of their tool marks them with `x-mcp-header`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

const MARK: &str = "x-mcp-header";

/// The names and values of the headers for these arguments.
pub(super) fn headers(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let mut headers = Vec::new();
    for (name, property) in properties {
        let Some(argument) = arguments.get(name) else { continue };
        let text = match argument {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(argument.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        if let (Some(mark), Some(text)) = (property.get(MARK).and_then(Value::as_str), text) {
            // Every text in base64 is a legal header.
            headers.push((format!("mcp-param-{mark}"), format!("=?base64?{}?=", BASE64_STANDARD.encode(text))));
        }
        headers.extend(self::headers(property, argument));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marked_arguments_are_headers() {
        let inner =
            json!({ "type": "object", "properties": { "count": { "type": "integer", "x-mcp-header": "Count" } } });
        let region = json!({ "type": "string", "x-mcp-header": "Region" });
        let schema = json!({ "properties": { "inner": inner, "region": region, "plain": { "type": "string" } } });
        let found = headers(&schema, &json!({ "inner": { "count": 7 }, "region": "Zürich", "plain": "x" }));
        let expected = [("mcp-param-Count", "=?base64?Nw==?="), ("mcp-param-Region", "=?base64?WsO8cmljaA==?=")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(headers(&schema, &json!({ "region": null })), []);
        assert_eq!(headers(&json!(true), &json!({ "region": "x" })), []);
    }
}
