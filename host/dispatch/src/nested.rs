//! Nested turns: submits those that calls wait for, returns their results, and cancels those that no call waits for.
//!
//! The commit of a wait has the nested turn, and the nested turn names its parent. So everything here follows from the two
//! turns, and doing it again changes nothing. After a kill, both are found among the turns that have not ended.

use domain::{
    Outcome, Principal, Span, Turn, TurnId,
    call::Pinned,
    nested::{self, NestedTurn, Parent},
    outcome::{Failure, FailureCode},
    principal::Role,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::committer::{Observer, TurnChange};
use crate::error::Error;
use crate::handle::Handle;
use crate::ports::Commit;
use crate::quota::Busy;
use crate::request::{CallRequest, NewNested, TurnRequest};

/// The pause after the first failure. It doubles with each one that follows.
const FIRST_PAUSE: Span = Span::from_secs(1);

const MAX_PAUSE: Span = Span::from_secs(60);

/// A turn with a call that asked for a nested turn, and that turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nesting {
    parent: TurnId,
    child: TurnId,
}

/// Notices what changes for nested turns.
pub(crate) struct NestedTurns(UnboundedSender<Nesting>);

impl NestedTurns {
    pub(crate) fn new() -> (Self, UnboundedReceiver<Nesting>) {
        let (sender, receiver) = unbounded_channel();
        (Self(sender), receiver)
    }

    /// A turn of the last host that has not ended.
    pub(crate) fn found(&self, turn: &Turn) {
        awaited(turn).for_each(|child| self.look(turn.id, child));
        self.look_at_parent(turn);
    }

    fn look_at_parent(&self, turn: &Turn) {
        if let Some(parent) = &turn.parent {
            self.look(parent.turn, turn.id);
        }
    }

    fn look(&self, parent: TurnId, child: TurnId) {
        // Without a receiver, the host is ending, and the next one looks.
        let _ = self.0.send(Nesting { parent, child });
    }
}

impl Observer for NestedTurns {
    fn committed(&self, _: &Commit, change: Option<&TurnChange<'_>>) {
        let Some(TurnChange { before, after, .. }) = change else { return };
        let was: Vec<TurnId> = before.iter().flat_map(|turn| awaited(turn)).collect();
        let now: Vec<TurnId> = awaited(after).collect();
        let opened = now.iter().filter(|child| !was.contains(child));
        let closed = was.iter().filter(|child| !now.contains(child));
        opened.chain(closed).for_each(|child| self.look(after.id, *child));
        if after.is_ended() {
            self.look_at_parent(after);
        }
    }
}

/// The nested turns that calls of a turn wait for.
fn awaited(turn: &Turn) -> impl Iterator<Item = TurnId> {
    turn.awaited().map(|nested| nested.turn)
}

/// Works for as long as the host lives.
pub(crate) async fn watch(handle: Handle, mut nestings: UnboundedReceiver<Nesting>) {
    // These tasks end together with this one.
    let mut tasks = JoinSet::new();
    while let Some(nesting) = nestings.recv().await {
        while tasks.try_join_next().is_some() {}
        tasks.spawn(settle(handle.clone(), nesting));
    }
}

/// Does what the two turns require. Tries again after a failure.
async fn settle(handle: Handle, nesting: Nesting) {
    let mut pause = FIRST_PAUSE;
    loop {
        match step(&handle, nesting).await {
            Ok(Next::Done) => return,
            Ok(Next::Again) => {}
            Err(error) => {
                let (child, parent) = (nesting.child, nesting.parent);
                tracing::warn!(%child, %parent, %error, "a nested turn could not be continued");
                if error.is_damage() {
                    return;
                }
                handle.sleep(pause).await;
                pause = Span::from_millis(pause.millis().saturating_mul(2)).min(MAX_PAUSE);
            }
        }
    }
}

enum Next {
    Done,
    /// The turns have changed.
    Again,
}

async fn step(handle: &Handle, nesting: Nesting) -> Result<Next, Error> {
    let parent = handle.turn_for_host(nesting.parent).await?;
    let wait = parent.as_ref().and_then(|turn| Waiting::of(turn, nesting.child));
    let child = match (handle.turn_for_host(nesting.child).await, &wait) {
        (Err(error), Some(Waiting { turn, nested, .. })) if error.is_damage() => {
            return refuse(handle, turn, nested, &damaged()).await;
        }
        (child, _) => child?,
    };
    match (wait, child) {
        (Some(wait), None) => submit(handle, wait).await,
        (Some(_), Some(child)) => {
            if let Some(results) = child.nested_results() {
                handle.return_nested(nesting.parent, nesting.child, results).await?;
            }
            Ok(Next::Done)
        }
        (None, Some(child)) if !child.is_ended() => {
            handle.cancel_unawaited(child.id).await?;
            Ok(Next::Done)
        }
        (None, _) => Ok(Next::Done),
    }
}

/// The wait for a nested turn.
struct Waiting<'a> {
    turn: &'a Turn,
    nested: &'a NestedTurn,
    /// The call that waits, and the tool that it is pinned to.
    parent: Box<Parent>,
    pinned: &'a Pinned,
}

impl<'a> Waiting<'a> {
    fn of(turn: &'a Turn, child: TurnId) -> Option<Self> {
        let (call, nested) =
            turn.pending().find_map(|(_, call, open)| Some((call, open.nested().filter(|it| it.turn == child)?)))?;
        let pinned = call.pinned.as_deref()?;
        let parent = Parent {
            conversation: turn.conversation.clone(),
            turn: turn.id,
            call: call.id.clone(),
            plugin: pinned.plugin.clone(),
            tool: call.tool.clone(),
            depth: turn.depth().saturating_add(1),
        };
        Some(Self { turn, nested, parent: Box::new(parent), pinned })
    }
}

/// Submits a nested turn in the name of its parent's caller. It is refused if the parent ended meanwhile, or if the plugin may
/// no longer call these tools.
async fn submit(handle: &Handle, Waiting { turn, nested, parent, pinned }: Waiting<'_>) -> Result<Next, Error> {
    if let Some(outcome) = handle.refused_calls(pinned, &nested.calls).await {
        return refuse(handle, turn, nested, &outcome).await;
    }
    let calls = nested.ids().zip(nested.calls.iter()).map(|(id, call)| CallRequest {
        id,
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        result: None,
        origin: None,
    });
    let request = TurnRequest {
        conversation: turn.conversation.of_nested(),
        calls: calls.collect(),
        context: turn.context.clone(),
        rejection: domain::event::Rejection::default(),
        ephemeral: false,
    };
    let new = NewNested { turn: nested.turn, parent };
    match handle.submit_nested(&caller(turn), request, &new).await {
        Ok(()) => Ok(Next::Again),
        Err(error) if is_temporary(&error) => Err(error),
        Err(error) => {
            let outcome = Outcome::Failed(Failure::new(code(&error), error.to_string()));
            refuse(handle, turn, nested, &outcome).await
        }
    }
}

/// Continues the call with the same outcome for each call of a nested turn that is not submitted.
async fn refuse(handle: &Handle, turn: &Turn, nested: &NestedTurn, outcome: &Outcome) -> Result<Next, Error> {
    let results = nested::refused(nested.calls.len(), outcome);
    handle.return_nested(turn.id, nested.turn, results).await?;
    Ok(Next::Again)
}

/// The outcome of each call of a nested turn that cannot be read.
fn damaged() -> Outcome {
    let message = "the stored record of the nested turn is damaged, so its results are unknown. Its calls may have taken effect; \
                   check before repeating them";
    Outcome::Failed(Failure::new(FailureCode::HostFault, message))
}

/// The principal of a turn, as its caller.
fn caller(turn: &Turn) -> Principal {
    Principal::new(turn.caller.clone(), [Role::Caller])
}

/// Whether the same turn may be accepted later without an answer or an end of another turn, which could wait for this one.
fn is_temporary(error: &Error) -> bool {
    matches!(
        error,
        Error::Fault(_)
            | Error::DiskLow
            | Error::Draining
            | Error::Loading { .. }
            | Error::Busy(Busy { wait: Some(_), .. })
    )
}

fn code(error: &Error) -> FailureCode {
    match error {
        Error::Busy(_) => FailureCode::Busy,
        Error::TooLarge { .. } | Error::TooManyNested { .. } | Error::Refused(_) => FailureCode::LimitExceeded,
        _ => FailureCode::HostFault,
    }
}
