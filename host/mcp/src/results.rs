//! Results of `tools/call`. Texts are for models: each says what happened and what to do.

use dispatch::Error;
use domain::json::Value;
use domain::outcome::FailureCode;
use domain::suspension::SuspensionKind;
use domain::{Call, Json, Outcome, Refusal, Suspension, Turn, rfc3339};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject, MetaObject};
use serde_json::json;

use crate::wait;

/// The member of a result's `_meta` about the call.
const CALL: &str = "dev.toolgate/call";

/// The result of a call that has ended.
///
/// # Errors
/// If no live tool has its name: a mistake of the client and not of a tool.
pub(crate) fn ended(turn: &Turn, call: &Call, outcome: &Outcome) -> Result<CallToolResult, ErrorData> {
    if let Outcome::Failed(failure) = outcome
        && failure.code == FailureCode::UnknownTool
    {
        return Err(ErrorData::invalid_params(failure.message.clone(), None));
    }
    let mut result = match outcome {
        Outcome::Ok { value, .. } => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text(value))]);
            result.structured_content = object(value).map(serde_json::Value::Object);
            result
        }
        _ => {
            let (_, message) = outcome.error(call.has_started()).unwrap_or_default();
            CallToolResult::error(vec![ContentBlock::text(message)])
        }
    };
    let mut about = about(turn, call);
    about.insert("outcome".to_owned(), outcome.as_str().into());
    if let Outcome::Failed(failure) = outcome {
        about.insert("code".to_owned(), failure.code.as_str().into());
    }
    if let Outcome::Ok { trusted: false, .. } = outcome {
        about.insert("trusted".to_owned(), false.into());
    }
    result.meta = Some(meta(about));
    Ok(result)
}

/// The result of a request whose call has not ended. `output_is_checked`: clients check the results of the tool, and this one
/// has no output, so it must count as an error.
pub(crate) fn waiting(turn: &Turn, call: &Call, output_is_checked: bool, console: Option<&str>) -> CallToolResult {
    let state = state(call, console);
    let text = format!(
        "{state} You cannot answer it. To get the outcome, call {} with {{\"call\":\"{}\"}}. Do not make the call in another way.",
        wait::NAME,
        call.id
    );
    let content = vec![ContentBlock::text(text)];
    let mut result = if output_is_checked { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.meta = Some(now(turn, call, console));
    result
}

/// The `_meta` with the state of a call.
pub(crate) fn now(turn: &Turn, call: &Call, console: Option<&str>) -> MetaObject {
    let mut about = about(turn, call);
    let open = call.open();
    if let Some(outcome) = call.outcome() {
        about.insert("outcome".to_owned(), outcome.as_str().into());
    } else {
        about.insert("state".to_owned(), if open.is_some() { "waiting" } else { "running" }.into());
        about.insert("says".to_owned(), waits_for(call).into());
    }
    if let Some(open) = open {
        let suspension = json!({
            "id": open.id.to_string(), "kind": open.kind().as_str(), "expiresAt": rfc3339(open.expires_at),
            "page": page(open, console),
        });
        about.insert("suspension".to_owned(), suspension);
    }
    meta(about)
}

/// The result of a request that the host did not carry out.
///
/// # Errors
/// For mistakes that a model cannot correct, and faults of the host.
pub(crate) fn refused(error: &Error) -> Result<CallToolResult, ErrorData> {
    match error {
        Error::Fault(_) | Error::CallIdTaken { .. } => Err(fault(error)),
        Error::NotFound(_)
        | Error::Forbidden(_)
        | Error::Removed { .. }
        | Error::CallRemoved { .. }
        | Error::TooLarge { .. }
        | Error::Busy(_)
        | Error::DiskLow
        | Error::Draining
        | Error::Loading { .. }
        | Error::TooManyNested { .. }
        | Error::Refused(_) => Ok(CallToolResult::error(vec![ContentBlock::text(message(error))])),
    }
}

/// The result of a request whose call has ended, while the client has too much unread.
pub(crate) fn unread(why: &str) -> CallToolResult {
    let text = format!("The call has ended, and its outcome was not sent: {why}. Make the same call again to get it.");
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The error of the protocol for a refusal.
pub(crate) fn fault(error: &Error) -> ErrorData {
    if let Error::Fault(fault) = error {
        tracing::error!(%fault, "a request of an MCP client failed");
        return ErrorData::internal_error("the host failed; its log has the details", None);
    }
    ErrorData::invalid_params(message(error), None)
}

fn message(error: &Error) -> String {
    let Error::Refused(Refusal::Invalid(violations)) = error else { return error.to_string() };
    let messages: Vec<_> = violations.iter().map(|violation| violation.message.as_str()).collect();
    messages.join("; ")
}

/// A result as a model reads it: a text is not quoted.
fn text(value: &Json) -> String {
    match value.value().as_deref() {
        Ok(Value::Text(text)) => text.to_string(),
        _ => value.as_str().to_owned(),
    }
}

/// A value as an object of rmcp, which has numbers of 64 bits. The text of the result has every digit.
pub(crate) fn object(value: &Json) -> Option<JsonObject> {
    serde_json::from_str(value.as_str()).ok()
}

fn about(turn: &Turn, call: &Call) -> JsonObject {
    let mut about = JsonObject::new();
    about.insert("call".to_owned(), call.id.as_str().into());
    about.insert("turn".to_owned(), turn.id.to_string().into());
    about.insert("conversation".to_owned(), turn.conversation.as_str().into());
    if let Some(pinned) = &call.pinned {
        about.insert("plugin".to_owned(), pinned.plugin.as_str().into());
    }
    if call.arguments != call.submitted {
        // As a text, with every digit.
        about.insert("editedArguments".to_owned(), call.arguments.as_str().into());
    }
    about
}

fn meta(about: JsonObject) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0.insert(CALL.to_owned(), about.into());
    meta
}

/// Says what the call waits for.
pub(crate) fn waits_for(call: &Call) -> String {
    let begun = if call.has_started() { "has started and has not ended" } else { "has not run" };
    let waits = match call.open().map(Suspension::kind) {
        None => "It still runs.",
        Some(SuspensionKind::Approval) => "It waits until a person approves or denies it.",
        Some(SuspensionKind::Elicitation) => "It waits for a person's answer.",
        Some(SuspensionKind::ClientExec) => "It waits for a program of the user that carries it out.",
        Some(SuspensionKind::External) => "It waits for the result of another system.",
        Some(SuspensionKind::Nested) => "It waits for its calls of other tools.",
        Some(SuspensionKind::Timer | SuspensionKind::RateLimit) => "It waits for a time and then continues.",
    };
    let is_outside = call.pinned.as_ref().is_some_and(|pinned| pinned.plugin.is_upstream());
    let outside = if is_outside { ", outside the sandbox," } else { "" };
    format!("This call of {}{outside} {begun}. {waits}", call.tool)
}

/// Says what the call waits for, and where people answer.
pub(crate) fn state(call: &Call, console: Option<&str>) -> String {
    let mut state = waits_for(call);
    if let Some(open) = call.open().filter(|open| open.kind().is_asked()) {
        match page(open, console) {
            Some(page) => state += &format!(" The user can answer at {page}"),
            None => state += &format!(" The user can answer it: it is {}", open.id),
        }
        state += &format!(", before {}.", rfc3339(open.expires_at));
    }
    state
}

/// The page of the console for what a call waits for.
pub(crate) fn page(open: &Suspension, console: Option<&str>) -> Option<String> {
    console.map(|console| format!("{console}/suspensions/{}", open.id))
}
