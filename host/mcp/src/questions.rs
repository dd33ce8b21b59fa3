//! Lane (b): what a waiting call asks the user of the client. A question is a form. Everything else that people decide is a page
//! of the console. The client sends its request again with the answers and with the `requestState` of the result. A client of
//! an older revision over a pipe gets requests of the host instead.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use dispatch::{Answer, Error};
use domain::suspension::{Decision, Elicitation, SuspensionBody, SuspensionKind};
use domain::{Call, CallId, Digest, Json, Refusal, Suspension, SuspensionId, Turn};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ErrorData, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, JsonObject, ProtocolVersion, RequestId, RequestStateCodec, SealOptions,
    ServerRequest,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};

use crate::calls::{Calls, NoResult};
use crate::key::RequestKey;
use crate::results;

/// The field of a form whose question has no named fields.
const ANSWER: &str = "answer";

/// The field of a form with the choices of a question.
const DECISION: &str = "decision";

/// The ways in which a client can ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CanAsk {
    form: bool,
    page: bool,
}

impl CanAsk {
    /// The ways that it declares.
    pub(crate) fn of(declared: Option<&ClientCapabilities>, revision: Option<&ProtocolVersion>) -> Self {
        let Some(declared) = declared.and_then(|declared| declared.elicitation.as_ref()) else {
            return Self::default();
        };
        let has_pages = revision.is_some_and(|revision| *revision >= ProtocolVersion::V_2025_11_25);
        // Without a member it means forms.
        Self { form: declared.form.is_some() || declared.url.is_none(), page: declared.url.is_some() && has_pages }
    }

    /// As [`CanAsk::of`], in the result of a request. Older revisions have no such results.
    pub(crate) fn of_result(declared: Option<&ClientCapabilities>, revision: Option<&ProtocolVersion>) -> Self {
        let is_new = revision.is_some_and(|revision| *revision >= ProtocolVersion::V_2026_07_28);
        if is_new { Self::of(declared, revision) } else { Self::default() }
    }

    pub(crate) const fn anything(self) -> bool {
        self.form || self.page
    }

    /// The question of the call of this turn, if the client can ask it. `problem`: why the last answer was not accepted.
    pub(crate) fn requests(self, calls: &Calls, turn: &Turn, problem: Option<&str>) -> Option<InputRequests> {
        let call = turn.calls.first()?;
        let open = call.open().filter(|open| open.kind().is_asked())?;
        let form = if self.form { form(calls, turn, open) } else { None };
        let params = match form {
            Some(requested_schema) => {
                let mut message = problem.map(|problem| format!("{problem}\n\n")).unwrap_or_default();
                message += &asks(call, open);
                ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
            }
            None => {
                let url = results::page(open, calls.shared.parts.console.as_deref()).filter(|_| self.page)?;
                let message = format!("{} Open the page to decide.", results::waits_for(call));
                ElicitRequestParams::UrlElicitationParams {
                    meta: None,
                    message,
                    url,
                    elicitation_id: open.id.to_string(),
                }
            }
        };
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        Some(BTreeMap::from([(open.id.to_string(), request)]))
    }
}

/// The text that the person reads. The prompt is a text of the plugin, so it is escaped, and the host says whose it is.
fn asks(call: &Call, open: &Suspension) -> String {
    let plugin = call.pinned.as_ref().map_or_else(String::new, |pinned| {
        let outside = if pinned.plugin.is_upstream() { ", which runs outside the sandbox," } else { "" };
        format!(" of the plugin {}{outside}", pinned.plugin)
    });
    let asks = format!("The tool {}{plugin} asks", call.tool);
    match open.about().and_then(|about| about.prompt.as_deref()) {
        Some(prompt) => format!("{asks}:\n{}", escape::block(prompt, "> ").trim_end()),
        None => format!("{asks} a question."),
    }
}

/// Escapes the titles and descriptions of a schema. They are the plugin's, and people read them. `None`: a name or a value needs
/// escapes too. The client would send the escaped one back.
fn escaped(schema: &mut Value) -> Option<()> {
    let is_plain = |text: &str| escape::line(text) == text;
    let is_plain_value = |value: &Value| value.as_str().is_none_or(is_plain);
    match schema {
        Value::Object(members) => {
            members.retain(|name, member| name != "default" || is_plain_value(member));
            for (name, member) in members {
                match member {
                    _ if !is_plain(name) => return None,
                    Value::String(text) if matches!(name.as_str(), "title" | "description") => {
                        *text = escape::line(text).into_owned();
                    }
                    Value::Array(labels) if name == "enumNames" => {
                        for label in labels {
                            if let Value::String(text) = label {
                                *text = escape::line(text).into_owned();
                            }
                        }
                    }
                    Value::Array(values) if name == "enum" && !values.iter().all(is_plain_value) => return None,
                    Value::String(_) if name == "const" && !is_plain_value(member) => return None,
                    member => escaped(member)?,
                }
            }
        }
        Value::Array(items) => items.iter_mut().try_for_each(escaped)?,
        _ => {}
    }
    Some(())
}

/// The form for a question that this caller may answer through its client. A schema with nested values, or with
/// names or values that a person could misread, has no form.
fn form(calls: &Calls, turn: &Turn, open: &Suspension) -> Option<ElicitationSchema> {
    let SuspensionBody::Elicitation(question) = &open.body else { return None };
    let by = calls.by_form();
    let may = by.may_answer(SuspensionKind::Elicitation, &turn.caller, false).is_ok() && open.counts_for(&by).is_ok();
    if !calls.shared.parts.questions || !may {
        return None;
    }
    let mut form = match &question.data_schema {
        _ if has_one_field(question) => {
            let schema = question.data_schema.as_ref().map_or_else(|| Some(JsonObject::new()), results::object)?;
            let schema = if schema.is_empty() { json!({ "type": "string" }) } else { schema.into() };
            json!({ "type": "object", "properties": { ANSWER: schema }, "required": [ANSWER] })
        }
        Some(schema) => results::object(schema)?.into(),
        None => json!({ "type": "object", "properties": {} }),
    };
    if let Some(choices) = &question.choices {
        let form = form.as_object_mut()?;
        let fields = form.entry("properties").or_insert_with(|| json!({})).as_object_mut()?;
        let earlier = fields.insert(DECISION.to_owned(), json!({ "type": "string", "enum": choices }));
        if earlier.is_some() {
            return None;
        }
        // The data beside a choice can be left out.
        form.insert("required".to_owned(), json!([DECISION]));
    }
    escaped(&mut form)?;
    serde_json::from_value(form).ok()
}

/// Whether the data of an answer is one field of the form. Otherwise all fields are the data.
fn has_one_field(question: &Elicitation) -> bool {
    match &question.data_schema {
        None => question.choices.is_none(),
        Some(schema) => results::object(schema).is_none_or(|schema| schema.get("type").is_none_or(|of| of != "object")),
    }
}

/// The answer in the content of a form.
fn read(question: &Elicitation, mut content: JsonObject) -> (Decision, Option<Json>) {
    let choice = question.choices.as_ref().map(|_| content.shift_remove(DECISION).unwrap_or_default());
    let decision = choice.map_or(ANSWER.into(), |choice| choice.as_str().unwrap_or_default().into());
    let data = match &question.data_schema {
        _ if has_one_field(question) => content.shift_remove(ANSWER),
        Some(_) if question.choices.is_none() || !content.is_empty() => Some(content.into()),
        _ => None,
    };
    (Decision::Answer(decision), data.map(|data| Json::unchecked(data.to_string())))
}

/// The answer of a client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Given {
    /// No answer to what the call waits for now.
    #[default]
    Nothing,
    /// The answer is in force, or the question has ended in another way.
    Answered,
    /// The person opened the page of this suspension.
    Opened(SuspensionId),
    /// The person does not answer this suspension here.
    Declined(SuspensionId),
    /// The answer does not fit the question, for this reason.
    Wrong(String),
}

/// Sends requests to a client of an older revision, until its user has answered or the call has ended. `None`: the client cannot
/// show them.
pub(crate) async fn send(
    peer: &Peer<RoleServer>,
    requests: InputRequests,
    ended: impl Future<Output = ()>,
) -> Option<InputResponses> {
    let mut ended = pin!(ended);
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let InputRequest::Elicitation(request) = request else { return None };
        let request = ServerRequest::ElicitRequest(request);
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok()?;
        let mut shown = Shown { peer, id: Some(sent.id.clone()) };
        let response = tokio::select! {
            response = sent.await_response() => response,
            () = &mut ended => {
                shown.close("the question was answered or has ended").await;
                break;
            }
        };
        shown.id = None;
        let response = response.ok()?;
        let ClientResult::ElicitResult(response) = response else { return None };
        responses.insert(key, serde_json::to_value(response).ok()?);
    }
    Some(responses)
}

/// A question that the client shows. If the host gives it up, because its own request was cancelled, the client closes it.
struct Shown<'a> {
    peer: &'a Peer<RoleServer>,
    /// `None`: the client has closed it.
    id: Option<RequestId>,
}

impl Shown<'_> {
    /// Tells the client to close it.
    fn close(&mut self, why: &str) -> impl Future<Output = ()> + Send + use<> {
        let over = self.id.take().map(|id| CancelledNotificationParam::new(Some(id), Some(why.to_owned())));
        let peer = self.peer.clone();
        async move {
            if let Some(over) = over {
                // If it fails, the client has left.
                let _ = peer.send_notification(CancelledNotification::new(over).into()).await;
            }
        }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if self.id.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            drop(runtime.spawn(self.close("the request was cancelled")));
        }
    }
}

/// Takes the client's answer to what the call of this turn waits for. Answers to anything else are ignored.
pub(crate) async fn take(calls: &Calls, turn: &Turn, responses: InputResponses) -> Result<Given, NoResult> {
    let Some(open) = turn.calls.first().and_then(Call::open) else { return Ok(Given::Nothing) };
    let Some(response) = responses.into_iter().find(|(key, _)| *key == open.id.to_string()) else {
        return Ok(Given::Nothing);
    };
    let response: ElicitResult = serde_json::from_value(response.1).map_err(|error| {
        ErrorData::invalid_params(
            format!("the response to {} is not the result of an elicitation: {error}", open.id),
            None,
        )
    })?;
    if response.action != ElicitationAction::Accept {
        return Ok(Given::Declined(open.id));
    }
    let (SuspensionBody::Elicitation(question), Some(Value::Object(content)), true) =
        (&open.body, response.content, form(calls, turn, open).is_some())
    else {
        return Ok(Given::Opened(open.id));
    };
    let (decision, data) = read(question, content);
    let suspension = open.id;
    let answer =
        Answer { suspension, decision, data, arguments: None, comment: None, expect_digest: None, standing: None };
    match calls.shared.parts.handle.resolve(&calls.by_form(), answer).await {
        Ok(_) | Err(Error::Refused(Refusal::Stale { .. } | Refusal::Replayed)) => Ok(Given::Answered),
        Err(Error::Refused(Refusal::Invalid(violations))) => {
            let said = violations.iter().map(|violation| format!("{} {}", violation.pointer, violation.message));
            let said = said.collect::<Vec<_>>().join("; ");
            Ok(Given::Wrong(format!("The answer was not accepted: {}.", escape::line(&said))))
        }
        Err(error) => Err(error.into()),
    }
}

/// The request that a `requestState` belongs to. Nobody else's request has the same bytes.
fn belongs_to(calls: &Calls, request: RequestKey) -> Vec<u8> {
    format!("{request}\n{}", calls.by.id).into_bytes()
}

fn codec(calls: &Calls) -> Result<RequestStateCodec, ErrorData> {
    let key = Digest::of_parts(&[b"toolgate mcp request state 1", &calls.shared.parts.key]);
    RequestStateCodec::try_new(key.as_bytes()).map_err(|error| {
        tracing::error!(%error, "the key for the states of requests is unusable");
        ErrorData::internal_error("the host failed", None)
    })
}

/// The result that asks. Its state names the call and what it waits for, and is good for this request and until the wait ends.
pub(crate) fn asking(
    calls: &Calls,
    request: RequestKey,
    turn: &Turn,
    requests: InputRequests,
) -> Result<InputRequiredResult, ErrorData> {
    let waits = turn.calls.first().and_then(|call| call.open().map(|open| (call, open)));
    let (call, open) = waits.ok_or_else(|| ErrorData::internal_error("the call does not wait", None))?;
    let left = open.expires_at - calls.shared.parts.handle.now();
    let bound = belongs_to(calls, request);
    let options = SealOptions::new().associated_data(&bound).ttl(Duration::from_millis(left.millis()));
    let state = codec(calls)?.seal_with(format!("{} {}", open.id, call.id).as_bytes(), &options);
    Ok(InputRequiredResult::new(Some(requests), Some(state)))
}

/// The call that a state names, and what it asked for.
///
/// # Errors
/// If this host did not make the state for this request of this principal, or its wait is over.
pub(crate) fn call_of(calls: &Calls, request: RequestKey, state: &str) -> Result<(CallId, SuspensionId), ErrorData> {
    let opened = codec(calls)?.open_with(state, &belongs_to(calls, request));
    let opened = opened.inspect_err(|error| tracing::debug!(%error, "a client sent a state that cannot be used"));
    let named = opened.ok().and_then(|named| String::from_utf8(named).ok());
    let named = named.and_then(|named| {
        let (suspension, call) = named.split_once(' ')?;
        Some((CallId::new(call).ok()?, suspension.parse().ok()?))
    });
    named.ok_or_else(|| {
        ErrorData::invalid_params(
            "the requestState is not of this request, or has expired; send the request without it",
            None,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &Value) -> Option<Value> {
        let mut form = json!({ "type": "object", "properties": properties });
        escaped(&mut form).map(|()| form["properties"].take())
    }

    #[test]
    fn texts_are_escaped_and_values_are_as_they_are() {
        let shown =
            form(&json!({ "a": { "type": "string", "title": "a\u{202e}b", "default": "x\ny", "enum": ["x", 1] } }));
        assert_eq!(shown, Some(json!({ "a": { "type": "string", "title": "a\\u{202e}b", "enum": ["x", 1] } })));
        let plain = json!({ "default": { "type": "string", "default": "a" }, "title": { "const": "b" } });
        assert_eq!(form(&plain), Some(plain));
    }

    #[test]
    fn names_and_values_that_deceive_have_no_form() {
        for properties in [
            json!({ "a\u{202e}b": { "type": "string" } }),
            json!({ "a": { "enum": ["keep", "dr\u{202e}op"] } }),
            json!({ "a": { "oneOf": [{ "const": "dr\u{202e}op", "title": "keep" }] } }),
        ] {
            assert_eq!(form(&properties), None, "{properties}");
        }
    }
}
