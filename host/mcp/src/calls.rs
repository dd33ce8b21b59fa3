//! The calls of a principal: each is a turn of one call. A request makes one, or joins the one of the same request.

use std::ops::Deref;
use std::sync::Arc;

use dispatch::{CallRequest, Error, Resource, Submitted, TurnRequest};
use domain::principal::Channel;
use domain::turn::TurnState;
use domain::{CallId, ConversationId, Json, Principal, Turn, TurnId, event::Rejection, ids::InvalidId};
use rmcp::model::{CallToolResult, ErrorData, ServerNotification};
use rmcp::{Peer, RoleServer};

use crate::exchange::Exchange;
use crate::key::{CallKey, RequestKey, conversation};
use crate::parts::Shared;
use crate::unread::{Then, Unread, Unsent, size};
use crate::{card, results};

/// How many calls of the same request may end, one after the other, while this one is submitted.
const MAX_ATTEMPTS: usize = 64;

/// The tool and the arguments of a request.
struct Asked<'a> {
    conversation: ConversationId,
    tool: &'a str,
    arguments: Json,
}

/// Why a request has no result.
pub(crate) enum NoResult {
    /// The host did not carry it out.
    Refused(Error),
    /// It is no request that the host understands, or the host failed.
    Fault(ErrorData),
    /// The client has too much unread, for this reason. The outcome does not count as received.
    Unread(String),
}

impl From<Error> for NoResult {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<ErrorData> for NoResult {
    fn from(error: ErrorData) -> Self {
        Self::Fault(error)
    }
}

/// The ids that this crate makes are valid.
impl From<InvalidId> for NoResult {
    fn from(error: InvalidId) -> Self {
        tracing::error!(%error, "an id for a call of an MCP client is invalid");
        Self::Fault(ErrorData::internal_error("the host failed", None))
    }
}

/// A turn with the results of its call, which may have megabytes. The memory for it is reserved: while a request has one, it must
/// not load another.
pub(crate) struct Loaded {
    turn: Turn,
    _reserved: Box<dyn Send + Sync>,
}

impl Deref for Loaded {
    type Target = Turn;

    fn deref(&self) -> &Turn {
        &self.turn
    }
}

/// The calls of one principal.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) shared: Arc<Shared>,
    pub(crate) by: Principal,
    /// Counts the bytes that the client has not read yet.
    pub(crate) unread: Arc<dyn Unread>,
    /// Of an HTTP request. `None`: a pipe. Its host belongs to the client and ends with it, so each message counts as sent.
    pub(crate) exchange: Option<Arc<Exchange>>,
}

impl Calls {
    /// Makes a call, or joins the one of the same request. With an id that the client chose, the call is the one of that id.
    /// Returns its turn, which may have ended.
    pub(crate) async fn make(&self, tool: &str, arguments: Json, chosen: Option<CallId>) -> Result<TurnId, NoResult> {
        let asked = Asked { conversation: self.conversation()?, tool, arguments };
        match chosen {
            Some(id) => {
                let _reserved = self.unread.reserve().await;
                Ok(self.submit(&asked, id).await?.turn.id)
            }
            None => self.submit_or_join(&asked).await,
        }
    }

    /// A call that was made before.
    pub(crate) async fn made(&self, id: &CallId) -> Result<Loaded, NoResult> {
        let reserved = self.unread.reserve().await;
        let turn = self.shared.parts.handle.turn_of_call(&self.by, &self.conversation()?, id).await?;
        Ok(Loaded { turn: of_one_call(turn)?, _reserved: reserved })
    }

    /// The call with this turn.
    pub(crate) async fn of_turn(&self, id: TurnId) -> Result<Loaded, NoResult> {
        let reserved = self.unread.reserve().await;
        self.read(id, reserved).await
    }

    /// As [`Calls::of_turn`], with memory that is reserved for the read.
    pub(crate) async fn read(&self, id: TurnId, reserved: Box<dyn Send + Sync>) -> Result<Loaded, NoResult> {
        let turn = self.shared.parts.handle.turn(&self.by, &self.conversation()?, id).await?;
        Ok(Loaded { turn: of_one_call(turn)?, _reserved: reserved })
    }

    /// Cancels a call. One that has ended does not change.
    pub(crate) async fn cancel(&self, turn: &Turn) -> Result<(), NoResult> {
        self.shared.parts.handle.cancel(&self.by, &turn.conversation, turn.id).await?;
        Ok(())
    }

    /// The principal, when its user answers through the client.
    pub(crate) fn by_form(&self) -> Principal {
        Principal { channel: Channel::McpForm, ..self.by.clone() }
    }

    /// The result of a call that has ended, and its count. When it was sent, the client has received it.
    pub(crate) fn result(&self, turn: &Turn) -> Result<(Result<CallToolResult, ErrorData>, Unsent), NoResult> {
        let ended = turn.calls.first().and_then(|call| call.outcome().map(|outcome| (call, outcome)));
        let (call, outcome) = ended.ok_or_else(|| ErrorData::internal_error("the call has no outcome", None))?;
        let result = results::ended(turn, call, outcome);
        let bytes = result.as_ref().map_or_else(size, size);
        let (shared, by) = (self.shared.clone(), self.by.id.clone());
        let then =
            call.id.as_str().parse().ok().map(|key| -> Then {
                Box::new(move || shared.deliveries.received(&by, key, shared.parts.handle.now()))
            });
        let counted = self.unread.charge(bytes).map_err(NoResult::Unread)?;
        Ok((result, Unsent::new(counted, then)))
    }

    /// The answer to the request has this count.
    pub(crate) fn answers(&self, unsent: Unsent) {
        match &self.exchange {
            Some(exchange) => exchange.answers(unsent),
            None => unsent.sent(),
        }
    }

    /// Sends a notification, and waits until it is on its way. It is counted, unless it was.
    pub(crate) async fn notify(
        &self,
        peer: &Peer<RoleServer>,
        notification: ServerNotification,
        counted: Option<Unsent>,
    ) -> Result<(), NoResult> {
        let is_there = match &self.exchange {
            Some(exchange) => exchange.notify(notification, counted).await.map_err(NoResult::Unread)?,
            None => {
                let is_sent = peer.send_notification(notification).await.is_ok();
                if let Some(unsent) = counted.filter(|_| is_sent) {
                    unsent.sent();
                }
                is_sent
            }
        };
        if is_there { Ok(()) } else { Err(ErrorData::internal_error("the client has left", None).into()) }
    }

    /// The state of a call, for a card.
    pub(crate) fn state(&self, turn: &Turn) -> Result<CallToolResult, ErrorData> {
        let call = turn.calls.first().ok_or_else(|| ErrorData::internal_error("the turn has no call", None))?;
        Ok(card::state(results::now(turn, call, self.shared.parts.console.as_deref()), call))
    }

    pub(crate) fn conversation(&self) -> Result<ConversationId, InvalidId> {
        conversation(&self.shared.parts.key, &self.by)
    }

    /// Submits the call under the first id whose call is open, has an outcome that no client has received, or is new.
    async fn submit_or_join(&self, asked: &Asked<'_>) -> Result<TurnId, NoResult> {
        let (deliveries, by) = (&self.shared.deliveries, &self.by.id);
        let request = RequestKey::new(asked.tool, &asked.arguments);
        let first = match deliveries.newest(by, request) {
            Some(number) => number,
            None => self.newest(&asked.conversation, request).await?,
        };
        for number in (first..).take(MAX_ATTEMPTS) {
            let key = CallKey { request, number };
            let _reserved = self.unread.reserve().await;
            match self.submit(asked, key.id()?).await {
                Ok(Submitted { turn, replayed, .. }) if !replayed || self.is_joined(&turn, key) => {
                    deliveries.asked(by, key, self.shared.parts.handle.now());
                    return Ok(turn.id);
                }
                // Its turn has ended, perhaps long ago.
                Ok(_) | Err(Error::CallRemoved { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ErrorData::internal_error("the same call is made too often at once", None).into())
    }

    /// Whether a request joins this call of an earlier one.
    fn is_joined(&self, turn: &Turn, key: CallKey) -> bool {
        let TurnState::Ended(_, at) = turn.state else { return true };
        let (parts, deliveries) = (&self.shared.parts, &self.shared.deliveries);
        parts.handle.now() <= at + parts.bounds.joins && !deliveries.is_received(&self.by.id, key, at)
    }

    /// The number of the newest recorded call of this request, or 1. The numbers have no gap.
    async fn newest(&self, conversation: &ConversationId, request: RequestKey) -> Result<u64, NoResult> {
        let (mut known, mut unknown) = (0, 1);
        while self.is_recorded(conversation, CallKey { request, number: unknown }).await? {
            (known, unknown) = (unknown, unknown * 2);
        }
        while unknown - known > 1 {
            let middle = known + (unknown - known) / 2;
            if self.is_recorded(conversation, CallKey { request, number: middle }).await? {
                known = middle;
            } else {
                unknown = middle;
            }
        }
        Ok(known.max(1))
    }

    async fn is_recorded(&self, conversation: &ConversationId, key: CallKey) -> Result<bool, NoResult> {
        let _reserved = self.unread.reserve().await;
        match self.shared.parts.handle.turn_of_call(&self.by, conversation, &key.id()?).await {
            Ok(_) | Err(Error::Removed { .. }) => Ok(true),
            Err(Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Submits to the end, even if the client leaves.
    async fn submit(&self, asked: &Asked<'_>, id: CallId) -> Result<Submitted, Error> {
        let call =
            CallRequest { id, tool: asked.tool.into(), arguments: asked.arguments.clone(), result: None, origin: None };
        let request = TurnRequest {
            conversation: asked.conversation.clone(),
            calls: vec![call],
            context: None,
            rejection: Rejection::default(),
            ephemeral: false,
        };
        self.shared.parts.handle.submit(&self.by, request).await
    }
}

/// A turn of an MCP client. Other programs can submit turns of several calls to the conversation of a token.
fn of_one_call(turn: Turn) -> Result<Turn, Error> {
    if turn.calls.len() == 1 { Ok(turn) } else { Err(Error::NotFound(Resource::Call)) }
}
