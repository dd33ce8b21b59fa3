//! The outcome of a call, from the answer of its server.

use domain::{
    Json, Outcome,
    outcome::{Failure, FailureCode},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::message::{Answer, NoAnswer};
use crate::settings::UpstreamSettings;

/// The longest error text of a server that a model reads, in characters.
const MAX_ERROR: usize = 8 << 10;

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(rename = "resultType", default)]
    kind: Option<String>,
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    #[serde(rename = "structuredContent", borrow, default)]
    structured: Option<&'a RawValue>,
    #[serde(rename = "isError", default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

/// The outcome of a call with this answer. Secrets are redacted first.
pub(crate) fn outcome(settings: &UpstreamSettings, answer: Result<Answer, NoAnswer>) -> Outcome {
    let name = settings.name();
    let failed = |code, message: String| Outcome::Failed(Failure::new(code, (settings.redact)(message)));
    let text = match answer {
        Ok(Answer::Result(text)) => (settings.redact)(text),
        Ok(Answer::Error { code, message }) => {
            // A secret that is cut is not found.
            let message = (settings.redact)(message);
            let message = escape::excerpt(&message, MAX_ERROR);
            return failed(FailureCode::ToolFailed, format!("{message} (error {code} of the MCP server {name})"));
        }
        Err(NoAnswer::NotSent(why)) => {
            let message = format!("the MCP server {name} {why}; nothing was carried out");
            return failed(FailureCode::ToolUnavailable, message);
        }
        Err(NoAnswer::SessionEnded) => {
            let message = format!("the MCP server {name} ends each new session; nothing was carried out");
            return failed(FailureCode::ToolUnavailable, message);
        }
        Err(NoAnswer::Unknown(why)) => {
            let message = format!(
                "the MCP server {name} {why} while this call ran. It may or may not have taken effect; check before repeating it"
            );
            return failed(FailureCode::ToolFailed, message);
        }
        Err(NoAnswer::OutOfTime) => {
            let message = format!(
                "the MCP server {name} did not answer in time. The call may or may not have taken effect; check before repeating it"
            );
            return failed(FailureCode::OutOfTime, message);
        }
    };
    match read(&text) {
        Ok((true, value)) => {
            let message = value.value().ok().and_then(|value| value.as_text().map(str::to_owned));
            let message = message.unwrap_or_else(|| value.as_str().to_owned());
            failed(FailureCode::ToolFailed, message.chars().take(MAX_ERROR).collect())
        }
        Ok((false, value)) if value.size() > settings.bounds.result => {
            let max = settings.bounds.result;
            let message =
                format!("the tool ran, and its result has more than {max} bytes (limit `limits.result_bytes`)");
            failed(FailureCode::LimitExceeded, message)
        }
        // The host does not control the server.
        Ok((false, value)) => Outcome::Ok { value, trusted: false },
        Err(why) => failed(FailureCode::InvalidResult, format!("the MCP server {name} ran the call, and {why}")),
    }
}

/// Whether a result is an error, and its value: the structured content; without it, the text of a single text block, and
/// otherwise all blocks.
fn read(text: &str) -> Result<(bool, Json), String> {
    let invalid =
        |error: &dyn std::fmt::Display| format!("its result is invalid: {}", escape::excerpt(&error.to_string(), 200));
    // serde would also read a list as the members.
    if !text.starts_with('{') {
        return Err(invalid(&"it is not an object"));
    }
    let result: CallResult<'_> = serde_json::from_str(text).map_err(|error| invalid(&error))?;
    if result.kind.as_deref().is_some_and(|kind| kind != "complete") {
        return Err("it asks for input or wants to answer later, which this host does not support".to_owned());
    }
    let value = match (result.structured, result.content.as_slice()) {
        (Some(structured), _) if !result.is_error => structured.get().to_owned(),
        (_, [only]) => single(only.get()).unwrap_or_else(|| format!("[{only}]")),
        (_, blocks) => format!("[{}]", blocks.iter().map(|block| block.get()).collect::<Vec<_>>().join(",")),
    };
    Ok((result.is_error, Json::parse(value).map_err(|malformed| invalid(&malformed))?))
}

/// The text of a text block, as JSON.
fn single(block: &str) -> Option<String> {
    let Block { kind, text } = serde_json::from_str(block).ok()?;
    let text = text.filter(|text| kind == "text" && text.get().starts_with('"'))?;
    Some(text.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> (bool, String) {
        let (is_error, value) = read(text).unwrap();
        (is_error, value.as_str().to_owned())
    }

    #[test]
    fn value_is_the_structured_content_or_the_text() {
        for (text, is_error, expected) in [
            (r#"{"content":[{"type":"text","text":"a\n"}]}"#, false, r#""a\n""#),
            (r#"{"content":[],"structuredContent":{"n":1.00}}"#, false, r#"{"n":1.00}"#),
            (r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{},"isError":true}"#, true, r#""no""#),
            (r#"{"content":[{"type":"image","data":""}]}"#, false, r#"[{"type":"image","data":""}]"#),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                false,
                r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#,
            ),
            (r#"{}"#, false, "[]"),
        ] {
            assert_eq!(value(text), (is_error, expected.to_owned()), "{text}");
        }
        for wrong in ["[]", r#"{"resultType":"input_required"}"#, r#"{"content":7}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
