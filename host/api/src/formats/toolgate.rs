//! Toolgate's own format: the types of this crate.

use std::sync::Arc;

use dispatch::ports::KnownTool;
use dispatch::{CallRequest, ProviderResult};
use domain::Turn;

use super::{OwnMembers, Submitted, call_id, value_of};
use crate::error::{Error, Result};
use crate::json::{self, Checked};

pub(super) fn tools(tools: &[Arc<KnownTool>]) -> Result<String> {
    let tools = tools.iter().map(|live| crate::Tool::from(live.as_ref())).collect();
    json::write(&crate::ToolList { tools })
}

pub(super) fn turn(turn: &Turn, replayed: bool, ephemeral: bool) -> Result<String> {
    json::write(&crate::Turn { replayed, ephemeral, ..turn.into() })
}

pub(super) fn read(body: &Checked<'_>) -> Result<Submitted> {
    let submit: crate::Submit = body.read()?;
    let calls =
        submit.calls.into_iter().enumerate().map(|(index, call)| request(index, call)).collect::<Result<_>>()?;
    let own = OwnMembers {
        context: submit.context.map(|context| context.0),
        rejection: submit.rejection,
        ephemeral: submit.ephemeral,
    };
    Ok(Submitted { calls, own: Some(own) })
}

fn request(index: usize, call: crate::SubmitCall) -> Result<CallRequest> {
    let id = call_id(&call.id, || format!("/calls/{index}/id"))?;
    let result = match (call.result, call.error) {
        (None, None) => None,
        (Some(value), None) => Some(ProviderResult::Value(value.0)),
        (None, Some(error)) => Some(ProviderResult::Error(error)),
        (Some(_), Some(_)) => {
            let message = "this call has both `result` and `error`; send only one";
            return Err(Error::invalid_at(format!("/calls/{index}"), message));
        }
    };
    Ok(CallRequest { id, tool: call.tool.into(), arguments: value_of(call.arguments.0), result, origin: None })
}
