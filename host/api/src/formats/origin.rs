//! Members of a provider's call that its result must repeat. The host stores them with the call, and only this folder
//! interprets them.

use dispatch::ProviderResult;
use domain::{
    Call, Json, Outcome,
    outcome::{Failure, FailureCode},
};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::{Verbatim, json};

/// The maximum size of a recorded hosted item. A larger one is replaced by its size.
const MAX_HOSTED_BYTES: usize = 64 << 10;

/// See the module.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Origin {
    pub(super) kind: Option<Kind>,
    /// The namespace of a function (Responses).
    pub(super) namespace: Option<String>,
    /// The toolset that a tool is a member of (Messages).
    pub(super) toolset_name: Option<String>,
    /// The program or the model that made the call (Responses).
    pub(super) caller: Option<Verbatim>,
}

/// A kind of call that is not a plain function call.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A call of a custom tool, whose input is a text.
    Custom,
    /// A call that the provider carried out. It expects no result.
    Hosted,
}

impl Origin {
    /// The origin that was recorded with a call.
    pub(super) fn of(call: &Call) -> Self {
        call.origin.as_ref().and_then(|origin| serde_json::from_str(origin.as_str()).ok()).unwrap_or_default()
    }

    /// A call that the provider carried out.
    pub(super) fn hosted() -> Self {
        Self { kind: Some(Kind::Hosted), ..Self::default() }
    }

    /// The origin to record. A call that already ended never runs here.
    pub(super) fn recorded(&self, ended: Option<Outcome>) -> Result<Option<dispatch::Origin>> {
        let is_plain = self.kind.is_none() && self.namespace.is_none() && self.toolset_name.is_none();
        if is_plain && self.caller.is_none() {
            return Ok(None);
        }
        Ok(Some(dispatch::Origin { members: Json::new(json::write(self)?), ended }))
    }
}

/// The outcome of a call to another executor.
pub(super) fn addressed_to(other: &str) -> Outcome {
    let message = format!(
        "this call is addressed to {}, and this host runs its own tools only; nothing was run",
        escape::quoted(other, 64)
    );
    Outcome::Failed(Failure::new(FailureCode::UnknownTool, message))
}

/// The outcome of a call that the provider carried out as a tool that no plugin declares.
pub(super) fn undeclared(result: ProviderResult) -> Outcome {
    match result {
        ProviderResult::Value(value) => Outcome::Ok { value: bounded(value), trusted: false },
        ProviderResult::Error(message) => {
            Outcome::Failed(Failure::new(FailureCode::ToolFailed, escape::excerpt(&message, MAX_HOSTED_BYTES)))
        }
    }
}

/// The value, or its size if it is too large to record.
pub(super) fn bounded(value: Json) -> Json {
    match value.size() {
        size if size > MAX_HOSTED_BYTES => Json::new(format!("{{\"omitted_bytes\":{size}}}")),
        _ => value,
    }
}
