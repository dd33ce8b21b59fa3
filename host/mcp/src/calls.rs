//! The path of a `tools/call`: submit a turn of one call, or join the call of the same request, and wait for its outcome.

use dispatch::{CallRequest, Error, Submitted, TurnRequest, Until};
use domain::turn::TurnState;
use domain::{Call, CallId, ConversationId, Json, Turn, event::Rejection, ids::InvalidId};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ErrorData};
use rmcp::service::RequestContext;

use crate::connection::Connection;
use crate::key::{CallKey, RequestKey, conversation};
use crate::results;

/// How many calls of the same request may end, one after the other, while this one is submitted.
const MAX_ATTEMPTS: u64 = 64;

/// The tool and the arguments of a request.
struct Asked<'a> {
    conversation: ConversationId,
    tool: &'a str,
    arguments: Json,
}

impl Connection {
    /// Makes a call, or joins the open one, and waits for a bounded time. With an id that the client chose, the call is the
    /// one of that id.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Json,
        chosen: Option<CallId>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let asked = Asked { conversation: self.conversation()?, tool, arguments };
        let submitted = match chosen {
            Some(id) => self.submit(&asked, id).await.map(|submitted| submitted.turn),
            None => self.submit_or_join(&asked).await?,
        };
        match submitted {
            Ok(turn) => self.held(turn, context).await,
            Err(error) => results::refused(&error),
        }
    }

    /// Waits for a call that was made before.
    pub(crate) async fn wait(
        &self,
        id: &CallId,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        match self.shared.parts.handle.turn_of_call(&self.by, &self.conversation()?, id).await {
            Ok(turn) => self.held(turn, context).await,
            Err(error) => results::refused(&error),
        }
    }

    fn conversation(&self) -> Result<ConversationId, ErrorData> {
        conversation(&self.shared.parts.key, &self.by).map_err(|error| invalid_id(&error))
    }

    /// Submits the call under the first id whose call is open, has an outcome that no client has received, or is new.
    ///
    /// The outer error is a fault of this program.
    async fn submit_or_join(&self, asked: &Asked<'_>) -> Result<Result<Turn, Error>, ErrorData> {
        let (deliveries, by) = (&self.shared.deliveries, &self.by.id);
        let request = RequestKey::new(asked.tool, &asked.arguments);
        let first = match deliveries.newest(by, request) {
            Some(number) => Ok(number),
            None => self.newest(&asked.conversation, request).await,
        };
        let first = match first {
            Ok(first) => first,
            Err(error) => return Ok(Err(error)),
        };
        let mut last = None;
        for number in (first..).take(MAX_ATTEMPTS as usize) {
            let key = CallKey { request, number };
            match self.submit(asked, key.id().map_err(|error| invalid_id(&error))?).await {
                Ok(Submitted { turn, replayed, .. }) if !replayed || self.is_joined(&turn, key) => {
                    deliveries.asked(by, key, self.shared.parts.handle.now());
                    return Ok(Ok(turn));
                }
                Ok(_) => {}
                // Its turn ended long ago.
                Err(error @ (Error::CallRemoved { .. } | Error::CallIdTaken { .. })) => last = Some(error),
                Err(error) => return Ok(Err(error)),
            }
        }
        last.map(Err).ok_or_else(|| ErrorData::internal_error("the same call was made too often at once", None))
    }

    /// Whether a request joins this call of an earlier one.
    fn is_joined(&self, turn: &Turn, key: CallKey) -> bool {
        let TurnState::Ended(_, at) = turn.state else { return true };
        let (parts, deliveries) = (&self.shared.parts, &self.shared.deliveries);
        parts.handle.now() <= at + parts.bounds.joins && !deliveries.is_received(&self.by.id, key, at)
    }

    /// The number of the newest recorded call of this request, or 1. The numbers have no gap.
    async fn newest(&self, conversation: &ConversationId, request: RequestKey) -> Result<u64, Error> {
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

    async fn is_recorded(&self, conversation: &ConversationId, key: CallKey) -> Result<bool, Error> {
        let Ok(id) = key.id() else { return Ok(false) };
        match self.shared.parts.handle.turn_of_call(&self.by, conversation, &id).await {
            Ok(_) | Err(Error::Removed { .. }) => Ok(true),
            Err(Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
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

    /// Waits until the call ends, the time is over, or the client cancels the request. A cancelled request ends only the wait:
    /// a connection that breaks looks the same, and the call may wait for a person.
    async fn held(&self, turn: Turn, context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        let parts = &self.shared.parts;
        let (conversation, id) = (turn.conversation.clone(), turn.id);
        // It may wait long, and a waiting turn uses no memory.
        drop(turn);
        let waited = tokio::select! {
            waited = parts.handle.wait(&self.by, &conversation, id, Until::Ended, parts.bounds.hold) => waited,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the request was cancelled", None)),
        };
        let turn = match waited {
            Ok(turn) => turn,
            Err(error) => return results::refused(&error),
        };
        let Some(call) = turn.calls.first() else {
            return Err(ErrorData::internal_error("the turn has no call", None));
        };
        let Some(outcome) = call.outcome() else {
            return Ok(results::waiting(&turn, call, self.output_is_checked(call), parts.console.as_deref()));
        };
        if let Ok(key) = call.id.as_str().parse() {
            self.shared.deliveries.received(&self.by.id, key, parts.handle.now());
        }
        results::ended(&turn, call, outcome)
    }

    /// Whether clients check the results of the call's tool against a schema.
    fn output_is_checked(&self, call: &Call) -> bool {
        let live = self.shared.parts.handle.tools();
        let live = live.iter().find(|live| live.tool.name.as_str() == &*call.tool);
        live.is_some_and(|live| crate::tools::output_schema(live).is_some())
    }
}

/// The ids that this crate makes are valid.
fn invalid_id(error: &InvalidId) -> ErrorData {
    tracing::error!(%error, "an id for a call of an MCP client is invalid");
    ErrorData::internal_error("the host failed", None)
}
