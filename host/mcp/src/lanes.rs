//! The lanes: the forms in which a call appears that does not end soon. One suspension is behind all of them. The client
//! declares with each request which it knows.

use dispatch::Until;
use domain::{Call, Span, SuspensionId, Turn, TurnId};
use rmcp::model::{CallToolResponse, CallToolResult, ClientCapabilities, InputRequests, ProtocolVersion};

use crate::calls::{Calls, NoResult};
use crate::key::RequestKey;
use crate::questions::{CanAsk, Given};
use crate::waiter::Waiter;
use crate::{questions, results, tasks, tools};

/// How long a client that knows tasks waits before it gets one.
const BEFORE_A_TASK: Span = Span::from_secs(1);

/// How often the host reads whether a question is still open, if no commit changes its turn.
const REREAD: Span = Span::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// A task, for whose state the client asks.
    Task,
    /// A result that asks the user of the client. If there is nothing that it can ask, as [`Lane::Wait`].
    Ask(CanAsk),
    /// As [`Lane::Ask`], with requests to the client before the result.
    Request(CanAsk),
    /// The request is held for a bounded time. Then its result says what the call waits for. For all clients.
    Wait,
}

impl Lane {
    /// The first lane that the client knows.
    pub(crate) fn of(
        declared: Option<&ClientCapabilities>,
        revision: Option<&ProtocolVersion>,
        takes_requests: bool,
    ) -> Self {
        let (of_result, can_ask) = (CanAsk::of_result(declared, revision), CanAsk::of(declared, revision));
        match () {
            () if declared.is_some_and(ClientCapabilities::supports_tasks) => Self::Task,
            () if of_result.anything() => Self::Ask(of_result),
            () if takes_requests && can_ask.anything() => Self::Request(can_ask),
            () => Self::Wait,
        }
    }

    /// Whether a client of this lane gets the progress of a call while it waits. A task has it in its state.
    pub(crate) fn reports(self) -> bool {
        self != Self::Task
    }

    /// The answer to a request with the call of this turn, when the call has ended, has a question for the client, or the lane
    /// does not wait longer. If the client leaves, only the wait ends: a connection that breaks looks the same as a request that
    /// is cancelled, and the call may wait for a person.
    pub(crate) async fn answer(
        self,
        calls: &Calls,
        (request, id): (RequestKey, TurnId),
        mut given: Given,
        waiter: &mut Waiter,
    ) -> Result<CallToolResponse, NoResult> {
        let handle = &calls.shared.parts.handle;
        let until = match self {
            Self::Ask(_) | Self::Request(_) => Until::Quiet,
            Self::Task | Self::Wait => Until::Ended,
        };
        let mut deadline = handle.now() + self.time(calls, &given);
        waiter.follow(id);
        loop {
            // Before the wait begins, because a turn that ends stays in memory for it.
            let reserved = waiter.during(calls.unread.reserve()).await?;
            let wait = handle.begin_wait(id, until, deadline - handle.now());
            let now = waiter.during(calls.read(id, reserved)).await.flatten()?;
            if now.is_ended() {
                let (result, unsent) = calls.result(&now)?;
                calls.answers(unsent);
                return Ok(result?.into());
            }
            if let Some(requests) = self.requests(calls, &now, &given) {
                if !matches!(self, Self::Request(_)) {
                    return Ok(questions::asking(calls, request, &now, requests)?.into());
                }
                let asked = now.calls.first().and_then(Call::open).map(|open| open.id);
                drop((now, wait));
                let ended = closed(calls, id, asked);
                let peer = waiter.peer().clone();
                let responses = waiter.during(questions::send(&peer, requests, ended)).await?;
                let now = waiter.during(calls.of_turn(id)).await.flatten()?;
                let Some(responses) = responses else { return Ok(waiting(calls, &now).into()) };
                given = questions::take(calls, &now, responses).await?;
                deadline = handle.now() + self.time(calls, &given);
                continue;
            }
            if handle.now() >= deadline {
                return Ok(match self {
                    Self::Task => tasks::created(calls, &now).into(),
                    Self::Ask(_) | Self::Request(_) | Self::Wait => waiting(calls, &now).into(),
                });
            }
            // It may wait long, and a waiting turn uses no memory.
            drop(now);
            // Not kept: reports come first, and the client may read them slowly.
            drop(waiter.during(wait.ends()).await?);
            waiter.report().await?;
        }
    }

    /// How long the request is held after this answer.
    fn time(self, calls: &Calls, given: &Given) -> Span {
        match (self, given) {
            (_, Given::Declined(_)) => Span::ZERO,
            (Self::Task, _) => BEFORE_A_TASK,
            (Self::Ask(_) | Self::Request(_) | Self::Wait, _) => calls.shared.parts.bounds.hold,
        }
    }

    /// The requests of this turn's call to the client. Nothing that it has just opened or declined.
    fn requests(self, calls: &Calls, turn: &Turn, given: &Given) -> Option<InputRequests> {
        let (Self::Ask(can_ask) | Self::Request(can_ask)) = self else { return None };
        let (problem, left_out) = match given {
            Given::Wrong(problem) => (Some(problem.as_str()), None),
            Given::Opened(id) | Given::Declined(id) => (None, Some(id.to_string())),
            Given::Nothing | Given::Answered => (None, None),
        };
        let requests = can_ask.requests(calls, turn, problem)?;
        Some(requests).filter(|requests| left_out.is_none_or(|id| !requests.contains_key(&id)))
    }
}

/// Returns when this suspension of a turn is no longer open.
async fn closed(calls: &Calls, id: TurnId, asked: Option<SuspensionId>) {
    let handle = &calls.shared.parts.handle;
    loop {
        let reserved = calls.unread.reserve().await;
        let changed = handle.begin_wait(id, Until::Ended, REREAD).changes();
        match calls.read(id, reserved).await {
            Ok(now) if now.calls.first().and_then(Call::open).map(|open| open.id) == asked => {}
            _ => return,
        }
        changed.await;
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
        let asks = ClientCapabilities::builder().enable_elicitation().build();
        let (new, old) = (Some(&ProtocolVersion::V_2026_07_28), Some(&ProtocolVersion::V_2025_11_25));
        let asking = CanAsk::of(Some(&asks), new);
        for over_a_pipe in [false, true] {
            assert_eq!(Lane::of(Some(&tasks), new, over_a_pipe), Lane::Task);
            assert_eq!(Lane::of(Some(&asks), new, over_a_pipe), Lane::Ask(asking));
            assert_eq!(Lane::of(Some(&ClientCapabilities::default()), new, over_a_pipe), Lane::Wait);
            assert_eq!(Lane::of(None, None, over_a_pipe), Lane::Wait);
        }
        assert_eq!(Lane::of(Some(&asks), old, false), Lane::Wait, "it has no such results");
        assert_eq!(Lane::of(Some(&asks), old, true), Lane::Request(asking));
    }
}
