//! The waits of a real call: interface `durable`. Its world is separate, so that only plugins that wait import it.

use serde_json::Value;

use super::{Wait, WaitError};

mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        inline: "package toolgate:sdk-durable; world durable { import toolgate:plugin/durable@0.1.2; }",
        world: "toolgate:sdk-durable/durable",
        with: {
            "toolgate:plugin/durable@0.1.2": generate,
            "toolgate:plugin/tool-types@0.1.2": crate::bindings::declarations::toolgate::plugin::tool_types,
        },
    });
}

use bindings::toolgate::plugin::durable as host;

/// Waits. The result of a sleep is `null`.
pub(crate) fn wait(wait: &Wait) -> Result<Value, WaitError> {
    let answer = match wait {
        Wait::Ask(question) => host::ask(&question.to_string()),
        Wait::Approve(question) => host::approve(&question.to_string()),
        Wait::External(question) => host::await_external(&question.to_string()),
        Wait::Calls(request) => host::call_tools(&request.to_string()),
        Wait::Sleep(time) => {
            host::sleep(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            return Ok(Value::Null);
        }
    };
    let text = answer.map_err(WaitError::from)?;
    serde_json::from_str(&text).map_err(|error| WaitError::Malformed(error.to_string()))
}

impl From<host::WaitError> for WaitError {
    fn from(error: host::WaitError) -> Self {
        match error {
            host::WaitError::Denied(comment) => Self::Denied(comment),
            host::WaitError::Expired => Self::Expired,
            host::WaitError::Cancelled => Self::Cancelled,
            host::WaitError::NotGranted(why) => Self::NotGranted(why),
        }
    }
}
