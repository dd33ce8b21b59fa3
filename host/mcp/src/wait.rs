//! The tool `toolgate_wait`: the outcome of a call that a request did not wait for.

use std::sync::Arc;

use domain::json::Value;
use domain::{CallId, Json};
use rmcp::model::{ErrorData, JsonObject, Tool, ToolAnnotations};
use serde_json::json;

pub(crate) const NAME: &str = "toolgate_wait";

const TITLE: &str = "Wait for a call";

const DESCRIPTION: &str = "Waits for a call that an earlier result named as still open, and returns its outcome. It waits for about half \
    a minute. If the call is still open then, the result says so, and you can call this again. It changes nothing.";

/// Its declaration.
pub(crate) fn tool() -> Tool {
    of_one_call(NAME, TITLE, DESCRIPTION)
}

/// The declaration of a tool of the host that reads one call.
pub(crate) fn of_one_call(name: &'static str, title: &'static str, description: &'static str) -> Tool {
    let id = json!({ "type": "string", "description": "The id of the call, from the result that says that it waits." });
    let mut properties = JsonObject::new();
    properties.insert("call".to_owned(), id);
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), json!(["call"]));
    schema.insert("additionalProperties".to_owned(), false.into());
    let annotations =
        ToolAnnotations::from_raw(Some(title.to_owned()), Some(true), Some(false), Some(true), Some(false));
    Tool::new(name, description, Arc::new(schema)).with_title(title).with_annotations(annotations)
}

/// The call that the arguments of such a tool name.
pub(crate) fn call(tool: &str, arguments: &Json) -> Result<CallId, ErrorData> {
    let wrong =
        |why: &str| ErrorData::invalid_params(format!("the arguments of {tool} are {{\"call\":\"…\"}}: {why}"), None);
    let value = arguments.value().map_err(|malformed| wrong(&malformed.to_string()))?;
    let id = value.pointer("/call").and_then(Value::as_text).ok_or_else(|| wrong("the id of the call is missing"))?;
    CallId::new(id).map_err(|error| wrong(&error.to_string()))
}
