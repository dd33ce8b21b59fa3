//! Members of a provider's call that its result must repeat. The host stores them with the call, and only the call's
//! format interprets them.

use dispatch::ProviderResult;
use domain::{
    Call, Json, Outcome,
    outcome::{Failure, FailureCode},
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::json;

/// The maximum size of a recorded hosted item. A larger one is replaced by its size.
const MAX_HOSTED_BYTES: usize = 64 << 10;

/// A kind of call that is not a plain function call.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OriginKind {
    /// A call of a custom tool, whose input is a text.
    Custom,
    /// A call that the provider carried out. It expects no result.
    Hosted,
}

/// The origin of a call that the provider carried out.
#[derive(Serialize)]
pub(super) struct Hosted {
    kind: OriginKind,
}

impl Default for Hosted {
    fn default() -> Self {
        Self { kind: OriginKind::Hosted }
    }
}

/// The members that were recorded with a call, as its format reads them.
pub(super) fn members<T: Default + DeserializeOwned>(call: &Call) -> T {
    call.origin.as_ref().and_then(|origin| json::part(origin.as_str()).ok()).unwrap_or_default()
}

/// The kind of a call that is not a plain function call.
pub(super) fn kind(call: &Call) -> Option<OriginKind> {
    #[derive(Default, Deserialize)]
    struct Any {
        kind: Option<OriginKind>,
    }
    members::<Any>(call).kind
}

/// The origin to record. `None` if the result must repeat nothing. A call that already ended never runs here.
pub(super) fn recorded(members: &impl Serialize, ended: Option<Outcome>) -> Result<Option<dispatch::Origin>> {
    let members = json::write(members)?;
    Ok((members != "{}").then(|| dispatch::Origin { members: Json::unchecked(members), ended }))
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
        size if size > MAX_HOSTED_BYTES => Json::unchecked(format!("{{\"omitted_bytes\":{size}}}")),
        _ => value,
    }
}
