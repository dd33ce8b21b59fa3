//! Checks the text of a message with the host's own parser before rmcp reads it, and keeps the arguments of a call verbatim.
//!
//! rmcp reads numbers as 64-bit values and takes the last of two equal keys. So its arguments can differ from those that the
//! client sent. The host approves and runs the text.

use domain::Json;
use domain::json::check_body;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::RequestContext;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The arguments of a `tools/call`, as the client wrote them. An extension of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments(pub(crate) Json);

impl Arguments {
    /// The arguments of the request.
    ///
    /// # Errors
    /// If no transport has kept them.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Result<Json, ErrorData> {
        let parts = context.extensions.get::<http::request::Parts>();
        let kept = context.extensions.get::<Self>().or_else(|| parts?.extensions.get::<Self>());
        let missing = || ErrorData::internal_error("the transport has not kept the arguments of the call", None);
        kept.map(|kept| kept.0.clone()).ok_or_else(missing)
    }
}

/// A message that cannot be read.
#[derive(Debug)]
pub(crate) struct Invalid {
    /// The id of the request, if it can be read.
    pub(crate) id: Option<RequestId>,
    pub(crate) error: Box<ErrorData>,
}

impl Invalid {
    pub(crate) fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self { id, error: Box::new(error) }
    }

    fn request(why: &'static str) -> Self {
        Self::new(None, ErrorData::invalid_request(why, None))
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// The id of a request, if it can be read.
pub(crate) fn id(message: &[u8]) -> Option<RequestId> {
    serde_json::from_slice::<Message<'_>>(message).ok()?.id
}

/// The part of a message that the host reads itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Call(Arguments),
    /// A `subscriptions/listen`, as rmcp is to read it. rmcp has a type for it, without tasks. So the filter gets a name that this
    /// type does not have, and rmcp passes on the request as one that it does not know.
    Listen(Vec<u8>),
    Other,
}

/// The method, and the member of its params that says what the client asks for.
pub(crate) const LISTEN: &str = "subscriptions/listen";
pub(crate) const FILTER: &str = "notifications";

/// The member in a [`Checked::Listen`].
pub(crate) const RENAMED: &str = "dev.toolgate/notifications";

/// Checks a message: one JSON object, without duplicate keys and not nested too deep.
///
/// # Errors
/// [`Invalid`].
pub(crate) fn check(bytes: &[u8]) -> Result<Checked, Invalid> {
    let text = str::from_utf8(bytes).map_err(|_| Invalid::request("a message is UTF-8"))?;
    let message = serde_json::from_str::<Message<'_>>(text);
    match check_body(text, &[]) {
        Ok(Some(_)) => {}
        Ok(None) => {
            return Err(Invalid::request("a message is one JSON object; batches are not part of the protocol"));
        }
        Err(malformed) => {
            let id = message.ok().and_then(|message| message.id);
            return Err(Invalid::new(id, ErrorData::parse_error(malformed.to_string(), None)));
        }
    }
    let Ok(message) = message else { return Err(Invalid::request("not a message of JSON-RPC 2.0")) };
    match message.method.as_deref() {
        Some("tools/call") => {}
        Some(LISTEN) => return Ok(Checked::Listen(renamed(text)?)),
        _ => return Ok(Checked::Other),
    }
    let params = message.params.map(RawValue::get).filter(|params| params.starts_with('{'));
    let call = params.map(serde_json::from_str::<Call<'_>>);
    let Some(Ok(call)) = call else {
        let error = ErrorData::invalid_params("the params of tools/call are an object", None);
        return Err(Invalid::new(message.id, error));
    };
    let arguments = call.arguments.map_or("{}", RawValue::get);
    if !arguments.starts_with('{') {
        let error = ErrorData::invalid_params("the arguments of a call are an object", None);
        return Err(Invalid::new(message.id, error));
    }
    Ok(Checked::Call(Arguments(Json::unchecked(arguments))))
}

/// The message with the other name for its filter.
fn renamed(text: &str) -> Result<Vec<u8>, Invalid> {
    let read = |error: serde_json::Error| Invalid::new(None, ErrorData::parse_error(error.to_string(), None));
    let mut message: Value = serde_json::from_str(text).map_err(read)?;
    if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut)
        && let Some(filter) = params.remove(FILTER)
    {
        params.insert(RENAMED.to_owned(), filter);
    }
    serde_json::to_vec(&message).map_err(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(params: &str) -> Result<Checked, Invalid> {
        check(format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#).as_bytes())
    }

    fn kept(params: &str) -> String {
        let Ok(Checked::Call(Arguments(kept))) = call(params) else { panic!("{params} is no call") };
        kept.to_string()
    }

    #[test]
    fn arguments_are_kept_as_they_were_written() {
        let written = r#"{ "n" : 123456789012345678901234567890, "x":1.0 }"#;
        assert_eq!(kept(&format!(r#"{{"name":"t","arguments":{written}}}"#)), written);
        assert_eq!(kept(r#"{"name":"t"}"#), "{}");
        assert_eq!(kept(r#"{"name":"t","arguments":null}"#), "{}");
        assert_eq!(check(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).unwrap(), Checked::Other);
    }

    #[test]
    fn messages_that_can_be_read_in_two_ways_are_refused() {
        let deep = format!(r#"{{"name":"t","arguments":{}{}}}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
        let invalid = call(&deep).unwrap_err();
        assert_eq!((invalid.error.code.0, invalid.id), (-32700, None), "too deep to read its id");
        for (params, code) in [
            (r#"{"name":"t","arguments":{"a":1,"a":2}}"#, -32700),
            (r#"{"name":"t","name":"u"}"#, -32700),
            (r#"{"name":"t","arguments":[1]}"#, -32602),
            (r#"["t"]"#, -32602),
        ] {
            let invalid = call(params).unwrap_err();
            assert_eq!(invalid.error.code.0, code, "{params:.60}");
            assert_eq!(invalid.id.map(|id| id.to_string()).as_deref(), Some("7"), "{params:.60}");
        }
        for text in [&b"[]"[..], b"\xff", b"{", br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#] {
            assert!(check(text).is_err());
        }
    }
}
