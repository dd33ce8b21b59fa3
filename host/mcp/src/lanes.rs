//! The lanes: the forms in which a call appears that does not end soon. One suspension is behind all of them. The client
//! declares with each request which it knows.

use domain::{Call, Span, Turn};
use rmcp::model::{CallToolResponse, CallToolResult, ClientCapabilities};

use crate::calls::{Calls, NoResult};
use crate::{results, tasks, tools};

/// How long a client that knows tasks waits before it gets one.
const BEFORE_A_TASK: Span = Span::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// A task, for whose state the client asks.
    Task,
    /// The request is held for a bounded time. Then its result says what the call waits for. For all clients.
    Wait,
}

impl Lane {
    /// The first lane that the client knows.
    pub(crate) fn of(declared: Option<&ClientCapabilities>) -> Self {
        if declared.is_some_and(ClientCapabilities::supports_tasks) { Self::Task } else { Self::Wait }
    }

    /// The answer to a request with this call, when the call has ended or the lane does not wait longer.
    pub(crate) async fn answer(
        self,
        calls: &Calls,
        turn: Turn,
        cancelled: impl Future<Output = ()> + Send,
    ) -> Result<CallToolResponse, NoResult> {
        let time = match self {
            Self::Task => BEFORE_A_TASK,
            Self::Wait => calls.shared.parts.bounds.hold,
        };
        let turn = calls.after(turn, time, cancelled).await?;
        if turn.is_ended() {
            return Ok(calls.result(&turn)?.into());
        }
        Ok(match self {
            Self::Task => tasks::created(calls, &turn).into(),
            Self::Wait => waiting(calls, &turn).into(),
        })
    }
}

fn waiting(calls: &Calls, turn: &Turn) -> CallToolResult {
    let console = calls.shared.parts.console.as_deref();
    let of_call = |call: &Call| results::waiting(turn, call, is_checked(calls, call), console);
    turn.calls.first().map(of_call).unwrap_or_default()
}

/// Whether clients check the results of the call's tool against a schema.
fn is_checked(calls: &Calls, call: &Call) -> bool {
    let live = calls.shared.parts.handle.tools();
    let live = live.iter().find(|live| live.tool.name.as_str() == &*call.tool);
    live.is_some_and(|live| tools::output_schema(live).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_is_chosen_from_the_declared_capabilities() {
        let tasks = ClientCapabilities::builder().enable_tasks().build();
        assert_eq!(Lane::of(Some(&tasks)), Lane::Task);
        assert_eq!(Lane::of(Some(&ClientCapabilities::default())), Lane::Wait);
        assert_eq!(Lane::of(None), Lane::Wait);
    }
}
