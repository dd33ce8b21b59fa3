//! `/v1/audit`: all actions in order, and the hash chain that reveals every change to them.

use axum::extract::State;
use axum::response::Response;
use dispatch::ports::Position;
use dispatch::{Action, AuditFilter};
use domain::{ConversationId, PluginName, PrincipalId, TurnId};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, Id, NoParams, Params, respond, suspensions};
use crate::auth::Admin;
use crate::error::{Code, Error, Result};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only entries after this position: the `next` of the previous page.
    after: Option<u64>,
    /// The approximate size of the page: 1 to 500, 100 if absent. Entries of one commit are never split.
    limit: Option<usize>,
    /// Only entries of this conversation.
    #[param(value_type = Option<String>)]
    conversation: Option<Id<ConversationId>>,
    /// Only entries of this turn.
    #[param(value_type = Option<String>)]
    turn: Option<Id<TurnId>>,
    /// Only entries about this tool or plugin.
    subject: Option<String>,
    /// Only entries about this plugin and about calls of its tools.
    #[param(value_type = Option<String>)]
    plugin: Option<Id<PluginName>>,
    /// Only actions of this principal.
    #[param(value_type = Option<String>)]
    by: Option<Id<PrincipalId>>,
    /// Only this action.
    #[param(value_type = Option<api::Action>)]
    action: Option<Id<Action>>,
    /// The same as `by`.
    #[param(value_type = Option<String>)]
    principal: Option<Id<PrincipalId>>,
    /// The same as `action`.
    #[param(value_type = Option<api::Action>)]
    event: Option<Id<Action>>,
}

/// The value of a parameter that has two names.
fn either<T: PartialEq>(one: (&str, Option<Id<T>>), other: (&str, Option<Id<T>>)) -> Result<Option<T>> {
    match (one.1, other.1) {
        (Some(one_value), Some(other_value)) if one_value.0 != other_value.0 => {
            let detail =
                format!("{} and {} are the same parameter with different values; send one of them", one.0, other.0);
            Err(Error::new(Code::BadRequest, detail))
        }
        (one, other) => Ok(one.or(other).map(|id| id.0)),
    }
}

/// Reads the audit
///
/// A page may be empty and still have a next one, if few entries match.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "read_audit", tag = "audit", params(List),
    responses(
        (status = 200, description = "A page, oldest first", body = api::AuditPage),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(query): Params<List>,
) -> Result<Response> {
    let limit = suspensions::page(query.limit)?;
    let after = Position(query.after.unwrap_or(0));
    let filter = AuditFilter {
        conversation: query.conversation.map(|conversation| conversation.0),
        turn: query.turn.map(|turn| turn.0),
        subject: query.subject,
        plugin: query.plugin.map(|plugin| plugin.0),
        by: either(("by", query.by), ("principal", query.principal))?,
        action: either(("action", query.action), ("event", query.event))?,
    };
    let unread = app.read(&by).await?;
    let page = app.ports.handle.audit(&by, &filter, after, limit).await?;
    let page = api::AuditPage {
        entries: page.entries.iter().map(api::AuditEntry::from).collect(),
        next: page.next.map(|next| next.0),
        head: page.head.into(),
    };
    respond(unread, &page)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chain {
    /// Only entries after this position: the `next` of the previous page.
    after: Option<u64>,
    /// The size of the page: 1 to 500, 100 if absent.
    limit: Option<usize>,
}

/// Reads the chain of the audit
///
/// Each entry has the stored hash of a commit and the current digest of its record. A reader that begins at the first
/// entry can recompute every hash, as `toolgate audit verify` does.
#[utoipa::path(
    get, path = "/v1/audit/chain", operation_id = "read_audit_chain", tag = "audit", params(Chain),
    responses(
        (status = 200, description = "A page, oldest first", body = api::AuditChain),
        (status = 403, description = "`not-allowed`"),
    )
)]
pub(crate) async fn chain(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(query): Params<Chain>,
) -> Result<Response> {
    let limit = suspensions::page(query.limit)?;
    let after = Position(query.after.unwrap_or(0));
    let unread = app.read(&by).await?;
    let (links, head) = app.ports.handle.audit_chain(&by, after, limit).await?;
    let last = links.last().map(|link| link.head.position).filter(|last| *last < head.position);
    let links = links.iter().map(api::AuditLink::from).collect();
    let page = api::AuditChain { links, next: last.map(|last| last.0), head: head.into() };
    respond(unread, &page)
}

/// Reads the newest signed checkpoint of the audit
///
/// The host writes one after each run of retention that removed turns. `toolgate audit verify --checkpoint` verifies it.
#[utoipa::path(
    get, path = "/v1/audit/checkpoint", operation_id = "read_audit_checkpoint", tag = "audit",
    responses(
        (status = 200, description = "The newest one", body = api::SignedCheckpoint),
        (status = 403, description = "`not-allowed`"),
        (status = 404, description = "`not-found`: retention has removed no turns yet"),
    )
)]
pub(crate) async fn checkpoint(
    State(app): State<App>,
    Admin(by, _in_flight): Admin,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response> {
    let newest = app.ports.checkpoints.newest().await.map_err(|error| Error::fault(&error))?;
    let none =
        || Error::new(Code::NotFound, "there is no signed checkpoint, because retention has removed no turns yet");
    respond(app.small(&by), &newest.ok_or_else(none)?)
}
