//! Which clients are attached to which conversation, and for which tools. It is known while the host of a client lives. The domain
//! decides the effects, for example that a call ends `unavailable`.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use domain::{CallIndex, ConversationId, Principal, ToolName, Turn, suspension::SuspensionKind, turn::Input};

use crate::pipeline::Pipeline;
use tokio::sync::Mutex as AsyncMutex;

use crate::ports::{Filter, Indexes, Log, Peers, StoreFault, SuspensionRow};
use crate::turns::{Entered, Slot};

/// The attached clients.
pub(crate) struct Presence {
    state: Mutex<State>,
    indexes: Arc<dyn Indexes>,
    peers: Arc<dyn Peers>,
    /// Held while the other hosts are informed, so that the last change comes last.
    telling: AsyncMutex<()>,
}

#[derive(Default)]
struct State {
    next: u64,
    attached: HashMap<ConversationId, Vec<(u64, Vec<ToolName>)>>,
}

impl Presence {
    pub(crate) fn new(indexes: Arc<dyn Indexes>, peers: Arc<dyn Peers>) -> Self {
        Self { state: Mutex::default(), indexes, peers, telling: AsyncMutex::default() }
    }

    /// The tools that clients at other hosts carry out for a turn, if it waits for a client.
    pub(crate) async fn elsewhere(&self, entered: &Entered, log: &dyn Log) -> Result<Vec<ToolName>, StoreFault> {
        let waits = |turn: &Turn| turn.pending().any(|(.., open)| open.kind() == SuspensionKind::ClientExec);
        let conversation = match &entered.renewed(log).await?.turn {
            Some((turn, _)) if waits(turn) => turn.conversation.clone(),
            Some(_) | None => return Ok(Vec::new()),
        };
        self.peers.attached(&conversation).await
    }

    /// Tells the other hosts which tools clients at this host carry out for a conversation.
    pub(crate) async fn tell(&self, conversation: &ConversationId) -> Result<(), StoreFault> {
        let _telling = self.telling.lock().await;
        let tools = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let tools = state.attached.get(conversation).into_iter().flatten().flat_map(|(_, tools)| tools);
            tools.cloned().collect::<BTreeSet<ToolName>>()
        };
        self.peers.attach(conversation, tools.into_iter().collect()).await
    }

    /// Whether a client is attached that carries out this tool, here or at another host.
    pub(crate) fn attends(&self, conversation: &ConversationId, tool: &str, elsewhere: &[ToolName]) -> bool {
        if elsewhere.iter().any(|name| name.as_str() == tool) {
            return true;
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = state.attached.get(conversation);
        attached.is_some_and(|clients| clients.iter().any(|(_, tools)| tools.iter().any(|name| name.as_str() == tool)))
    }

    /// Gives a new grace period to calls that no attached client can carry out any more. After it they end
    /// `unavailable`. Covers the calls of one tool in a conversation, or all calls after a start of the host.
    pub(crate) async fn clients_left(
        &self,
        pipeline: &Arc<Pipeline>,
        of: Option<(&ConversationId, &ToolName)>,
    ) -> Result<(), StoreFault> {
        let filter = Filter {
            open: Some(true),
            conversation: of.map(|(conversation, _)| conversation.clone()),
            tool: of.map(|(_, tool)| tool.as_str().to_owned()),
            kind: Some(SuspensionKind::ClientExec),
            ..Filter::default()
        };
        let mut after = None;
        loop {
            let page = self.indexes.suspensions(&filter, after, 100).await?;
            let is_of = |row: &SuspensionRow| of.is_none_or(|(conversation, _)| *conversation == row.conversation);
            for row in page.rows.into_iter().filter(is_of) {
                let entered = pipeline.turns.enter(row.turn);
                let left = async {
                    let elsewhere = self.elsewhere(&entered, pipeline.log.as_ref()).await?;
                    let input = |turn: &Turn, _: &mut Slot| {
                        Some(Input::ClientsLeft { calls: self.unattended(turn, &elsewhere) })
                    };
                    pipeline.step(&entered, input).await
                };
                if let Err(error) = left.await {
                    tracing::error!(turn = %row.turn, %error, "a call of a client that left got no grace period");
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The client calls of a turn that no attached client can carry out.
    fn unattended(&self, turn: &Turn, elsewhere: &[ToolName]) -> Vec<CallIndex> {
        let calls = turn.pending().filter(|(_, call, open)| {
            open.kind() == SuspensionKind::ClientExec && !self.attends(&turn.conversation, &call.tool, elsewhere)
        });
        calls.map(|(index, ..)| index).collect()
    }

    fn attach(&self, conversation: &ConversationId, tools: Vec<ToolName>) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next += 1;
        let id = state.next;
        state.attached.entry(conversation.clone()).or_default().push((id, tools));
        id
    }

    /// Returns the tools of the client.
    fn detach(&self, conversation: &ConversationId, id: u64) -> Vec<ToolName> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(clients) = state.attached.get_mut(conversation) else { return Vec::new() };
        let left = clients.extract_if(.., |(client, _)| *client == id).flat_map(|(_, tools)| tools).collect();
        if clients.is_empty() {
            state.attached.remove(conversation);
        }
        left
    }
}

/// A client is attached while this is held.
pub struct Attachment {
    presence: Arc<Presence>,
    pipeline: Arc<Pipeline>,
    conversation: ConversationId,
    id: u64,
    runtime: tokio::runtime::Handle,
}

impl Attachment {
    pub(crate) fn new(
        presence: Arc<Presence>,
        pipeline: Arc<Pipeline>,
        conversation: ConversationId,
        tools: Vec<ToolName>,
    ) -> Self {
        let id = presence.attach(&conversation, tools);
        Self { presence, pipeline, conversation, id, runtime: tokio::runtime::Handle::current() }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let tools = self.presence.detach(&self.conversation, self.id);
        let (presence, pipeline) = (self.presence.clone(), self.pipeline.clone());
        let conversation = self.conversation.clone();
        self.runtime.spawn(async move {
            if let Err(error) = presence.tell(&conversation).await {
                tracing::error!(%error, "the other hosts could not be informed that a client left");
            }
            for tool in tools {
                if let Err(error) = presence.clients_left(&pipeline, Some((&conversation, &tool))).await {
                    tracing::error!(%error, "the calls of a client that left could not be read");
                }
            }
        });
    }
}

/// Whether a principal may attach as a client.
pub(crate) fn may_attach(principal: &Principal) -> bool {
    principal.roles.has(domain::principal::Role::Client) || principal.roles.has(domain::principal::Role::Admin)
}
