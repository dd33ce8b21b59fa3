//! The hosts on the store, and the calls that they run.

use std::sync::Arc;

use domain::{CallId, ConversationId, OwnerId, PrincipalId, Timestamp, Turn, TurnId};

use super::Handle;
use crate::ports::{RunningHost, StoreFault};

/// The unfinished turns that are read at once.
const BATCH: usize = 256;

/// A call that a host runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOfHost {
    /// The run of the host.
    pub owner: OwnerId,
    pub conversation: ConversationId,
    pub turn: TurnId,
    pub call: CallId,
    pub tool: Arc<str>,
    /// The principal who submitted the turn.
    pub caller: PrincipalId,
    /// When its guest first began to run. For a durable call, this may be before its last wait.
    pub since: Option<Timestamp>,
}

impl CallOfHost {
    fn of(turn: &Turn) -> impl Iterator<Item = Self> {
        turn.calls.iter().filter_map(|call| {
            let owner = call.owner()?;
            let (id, tool, since) = (call.id.clone(), call.tool.clone(), call.started_at);
            let (conversation, caller) = (turn.conversation.clone(), turn.caller.clone());
            Some(Self { owner, conversation, turn: turn.id, call: id, tool, caller, since })
        })
    }
}

impl Handle {
    /// The hosts on the store that are alive. Empty if only one host can use the store.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn hosts(&self) -> Result<Vec<RunningHost>, StoreFault> {
        self.inner.pipeline.peers.hosts().await
    }

    /// The calls that hosts run, about `limit` of them. The oldest turns come first. Calls of turns that are not stored are known only to
    /// their hosts.
    ///
    /// # Errors
    /// Faults of the store. A turn whose log is damaged is left out.
    pub async fn calls_of_hosts(&self, limit: usize) -> Result<Vec<CallOfHost>, StoreFault> {
        let (mut calls, mut after) = (Vec::new(), None);
        loop {
            let page = self.inner.readers.indexes.unfinished(after, BATCH).await?;
            let Some((last, _)) = page.last() else { return Ok(calls) };
            after = Some(*last);
            for (id, _) in page.into_iter().filter(|(_, due)| due.running) {
                match self.turn_for_host(id).await {
                    Err(fault) if !fault.is_damage() => return Err(fault),
                    turn => calls.extend(turn.ok().flatten().iter().flat_map(CallOfHost::of)),
                }
                if calls.len() >= limit {
                    return Ok(calls);
                }
            }
        }
    }
}
