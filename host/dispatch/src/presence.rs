//! Which clients are attached to which conversation, and for which tools. Presence is of the moment and never stored;
//! what follows from it (a call that ends `unavailable`) is decided by the domain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{ConversationId, Input, Kind, Principal, ToolName, Turn};

use crate::dispatcher::Inner;
use crate::ports::{Filter, StoreFault};

/// The attached clients.
#[derive(Default)]
pub(crate) struct Presence(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    attached: HashMap<ConversationId, Vec<(u64, Vec<ToolName>)>>,
}

impl Presence {
    /// Whether a client is attached that carries out this tool.
    pub(crate) fn attends(&self, conversation: &ConversationId, tool: &str) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = state.attached.get(conversation);
        attached.is_some_and(|clients| clients.iter().any(|(_, tools)| tools.iter().any(|name| name.as_str() == tool)))
    }

    fn attach(&self, conversation: &ConversationId, tools: Vec<ToolName>) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.next += 1;
        let id = state.next;
        state.attached.entry(conversation.clone()).or_default().push((id, tools));
        id
    }

    fn detach(&self, conversation: &ConversationId, id: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(clients) = state.attached.get_mut(conversation) {
            clients.retain(|(client, _)| *client != id);
            if clients.is_empty() {
                state.attached.remove(conversation);
            }
        }
    }
}

/// A client is attached while this is held.
pub struct Attachment {
    inner: Arc<Inner>,
    conversation: ConversationId,
    id: u64,
    runtime: tokio::runtime::Handle,
}

impl Attachment {
    pub(crate) fn new(inner: Arc<Inner>, conversation: ConversationId, tools: Vec<ToolName>) -> Self {
        let id = inner.presence.attach(&conversation, tools);
        Self { inner, conversation, id, runtime: tokio::runtime::Handle::current() }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.inner.presence.detach(&self.conversation, self.id);
        let (inner, conversation) = (self.inner.clone(), self.conversation.clone());
        self.runtime.spawn(async move {
            if let Err(error) = clients_left(&inner, Some(conversation)).await {
                tracing::error!(%error, "client calls could not be looked up");
            }
        });
    }
}

/// Gives calls that no attached client can carry out any more a new grace, after which they end `unavailable`: those of a
/// conversation whose client has gone, or all of them when the host has just started and every client is gone.
pub(crate) async fn clients_left(inner: &Arc<Inner>, conversation: Option<ConversationId>) -> Result<(), StoreFault> {
    let filter = Filter { open: Some(true), conversation, kind: Some(Kind::ClientExec), ..Filter::default() };
    let mut after = None;
    loop {
        let page = inner.parts.store.suspensions(&filter, after, 100).await?;
        for row in page.rows {
            let entered = inner.turns.enter(row.turn);
            let unattended = |turn: &Turn| {
                let calls = turn.pending().filter(|(_, call, open)| {
                    open.kind == Kind::ClientExec && !inner.presence.attends(&turn.conversation, &call.tool)
                });
                calls.map(|(index, ..)| index).collect()
            };
            let stepped =
                inner.step(&entered, row.turn, |turn, _| Some(Input::ClientsLeft { calls: unattended(turn) }));
            if let Err(error) = stepped.await {
                tracing::error!(turn = %row.turn, %error, "a client call could not be given its grace");
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Whether a principal may attach as a client.
pub(crate) fn may_attach(principal: &Principal) -> bool {
    principal.roles.has(domain::Role::Client) || principal.roles.has(domain::Role::Admin)
}
