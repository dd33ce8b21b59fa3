//! Answers the requests of a client. rmcp reads the messages and calls this.

use std::borrow::Cow;

use domain::CallId;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, CustomRequest,
    CustomResult, ErrorCode, ErrorData, GetTaskParams, GetTaskResult, Implementation, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    RequestMetaObject, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;

use crate::calls::{Calls, NoResult};
use crate::frame::{self, Arguments};
use crate::key::{CallKey, NotMade, RequestKey};
use crate::lanes::Lane;
use crate::listen::{Subscription, Wanted};
use crate::questions::{CanAsk, Given};
use crate::waiter::{Reports, Waiter};
use crate::{card, questions, results, tasks, tools, wait};

/// The revisions that are answered, oldest first.
const REVISIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// The member of a request's `_meta` with an id for the call. A request with the same id is the same call.
const CALL_ID: &str = "dev.toolgate/callId";

/// How long a client may cache the list of tools, in milliseconds. Plugins are replaced while the host runs.
const LIST_TTL: u64 = 10_000;

/// The methods with params that this host reads. If rmcp does not recognise such a request, its params are invalid.
const METHODS: [&str; 9] = [
    "initialize",
    "resources/list",
    "resources/read",
    "server/discover",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

const INSTRUCTIONS: &str = "The tools run in a sandbox, unless their description says otherwise. Some calls wait until a person approves them or answers a question. If a \
    result says that a call waits, the call is still open: do other work, and get its outcome later with the tool toolgate_wait. \
    A repeated call with the same arguments joins the open call.";

/// Answers the requests of one principal.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) calls: Calls,
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let offered = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_resources();
        ServerConfig::new(offered.enable_tasks().build())
            .with_server_info(Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
            // For a client that asks for a revision that is not answered.
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(REVISIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.loaded(context.ct.cancelled()).await;
        let shows_cards = card::is_shown(context.client_capabilities().as_ref());
        let listed = tools::listed(&self.calls.shared.parts.handle.tools(), shows_cards)?;
        Ok(ListToolsResult::with_all_items(listed).with_ttl_ms(LIST_TTL).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Arguments::of(&context)?;
        let tool = std::mem::take(&mut request.name);
        let revision = context.protocol_version();
        // A connection that lasts takes requests.
        let takes_requests = self.calls.exchange.is_none();
        let lane = Lane::of(context.client_capabilities().as_ref(), revision.as_ref(), takes_requests);
        let chosen = chosen(&context.meta)?;
        let (state, responses) = (request.request_state.take(), request.input_responses.take());
        let (leaves, peer, token) = (context.ct.clone(), context.peer.clone(), context.meta.get_progress_token());
        let reports = token.filter(|_| lane.reports()).map(|token| Reports::new(&self.calls, token));
        // The call may wait long, and these have several times the size of the message.
        drop((request, context));
        self.loaded(leaves.cancelled()).await;
        let mut waiter = Waiter::new(leaves.cancelled_owned(), peer, reports);
        let answered = async {
            let key = RequestKey::new(&tool, &arguments);
            if tool == wait::NAME {
                let turn = self.calls.made(&wait::call(wait::NAME, &arguments)?).await?.id;
                return Lane::Wait.answer(&self.calls, (key, turn), Given::Nothing, &mut waiter).await;
            }
            if tool == card::STATE {
                let turn = self.calls.made(&wait::call(card::STATE, &arguments)?).await?;
                return Ok(self.calls.state(&turn)?.into());
            }
            let Some(state) = state else {
                let turn = self.calls.make(&tool, arguments, chosen).await?;
                return lane.answer(&self.calls, (key, turn), Given::Nothing, &mut waiter).await;
            };
            let (call, asked) = questions::call_of(&self.calls, key, &state)?;
            let turn = self.calls.made(&call).await?;
            let mut responses = responses.unwrap_or_default();
            // A state is for one question. The call may ask another one later.
            responses.retain(|key, _| *key == asked.to_string());
            let given = questions::take(&self.calls, &turn, responses).await?;
            let id = turn.id;
            drop(turn);
            lane.answer(&self.calls, (key, id), given, &mut waiter).await
        };
        match answered.await {
            Err(NoResult::Refused(error)) => results::refused(&error).map(Into::into),
            Err(NoResult::Fault(error)) => Err(error),
            Err(NoResult::Unread(why)) => Ok(results::unread(&why).into()),
            Ok(response) => Ok(response),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(card::resources())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = card::read(&request.uri).map(Into::into);
        read.ok_or_else(|| {
            ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": request.uri })))
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let revision = context.protocol_version();
        let can_ask = CanAsk::of_result(context.client_capabilities().as_ref(), revision.as_ref());
        let read = tasks::read(&self.calls, &request.task_id, can_ask);
        let read = Waiter::new(context.ct.cancelled_owned(), context.peer, None).during(read).await.flatten();
        let (task, counted) = read.map_err(fault)?;
        if let Some(unsent) = counted {
            self.calls.answers(unsent);
        }
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        tasks::update(&self.calls, &request.task_id, request.input_responses).await.map_err(fault)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        tasks::cancel(&self.calls, &request.task_id).await.map_err(fault)
    }

    /// rmcp compares the headers of a call with the arguments that the schema of its tool marks.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::of_name(&self.calls.shared.parts.handle.tools(), name)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let is_new = context.protocol_version().is_some_and(|revision| revision >= ProtocolVersion::V_2026_07_28);
        let method = request.method.as_str();
        if is_new && method == frame::LISTEN {
            let wanted = Wanted::of(request.params.as_ref().and_then(|params| params.get(frame::RENAMED)))?;
            return self.listen(wanted, context).await;
        }
        // This revision has no `initialize`.
        if METHODS.contains(&method) && !(is_new && method == "initialize") {
            return Err(ErrorData::invalid_params(format!("the params of {} are invalid", request.method), None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this host does not have this method", None))
    }
}

impl Connection {
    /// Sends the changes that the client asks for, until it leaves.
    async fn listen(&self, wanted: Wanted, context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let (capabilities, revision) = (context.client_capabilities(), context.protocol_version());
        let subscription = Subscription {
            calls: self.calls.clone(),
            peer: context.peer.clone(),
            id: context.id.clone(),
            has_tasks: capabilities.as_ref().is_some_and(ClientCapabilities::supports_tasks),
            can_ask: CanAsk::of_result(capabilities.as_ref(), revision.as_ref()),
        };
        let mut waiter = Waiter::new(context.ct.clone().cancelled_owned(), context.peer.clone(), None);
        drop(context);
        let ended = waiter.during(subscription.serve(wanted)).await.flatten();
        ended.map(|()| CustomResult::new(json!({ "resultType": "complete" }))).map_err(fault)
    }

    /// Waits until the host knows its tools, for a bounded time. Many clients start the host, ask at once, and never again.
    async fn loaded(&self, cancelled: impl Future<Output = ()> + Send) {
        let parts = &self.calls.shared.parts;
        tokio::select! {
            () = parts.ready.ready() => {}
            () = parts.handle.sleep(parts.bounds.hold) => {}
            () = cancelled => {}
        }
    }
}

/// The error for a request that has no form of a refusal.
fn fault(why: NoResult) -> ErrorData {
    match why {
        NoResult::Fault(error) => error,
        NoResult::Refused(error) => results::fault(&error),
        NoResult::Unread(why) => ErrorData::internal_error(why, None),
    }
}

/// The id that the client chose for the call.
fn chosen(meta: &RequestMetaObject) -> Result<Option<CallId>, ErrorData> {
    let Some(id) = meta.0.0.get(CALL_ID) else { return Ok(None) };
    let id = id.as_str().ok_or("expected a string".to_owned());
    let id = id.and_then(|id| CallId::new(id).map_err(|error| error.to_string()));
    let id = id.and_then(|id| match id.as_str().parse::<CallKey>() {
        Ok(_) => Err("the host makes the ids of this form".to_owned()),
        Err(NotMade) => Ok(id),
    });
    id.map(Some).map_err(|why| ErrorData::invalid_params(format!("{CALL_ID}: {why}"), None))
}
