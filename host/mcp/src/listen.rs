//! `subscriptions/listen` (2026-07-28): a request that lasts, with a notification for each change that the client asked for. Older
//! revisions get the changes of the tools without asking.

use std::collections::HashMap;

use dispatch::ports::{Facts, Position};
use dispatch::{Item, Live};
use domain::{Span, TurnId};
use rmcp::model::{
    CustomNotification, ErrorData, RequestId, ServerNotification, TaskStatus, ToolListChangedNotification,
};
use rmcp::{Peer, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::calls::{Calls, NoResult};
use crate::frame::{FILTER, LISTEN};
use crate::pace::Pace;
use crate::parts::Shared;
use crate::questions::CanAsk;
use crate::tasks;
use crate::unread::Unsent;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The maximum number of tasks of one request.
const MAX_TASKS: usize = 64;

/// How long to wait after a change of the tools before it is reported. Many plugins can change at the same time, and clients ask
/// for the list each time.
const SETTLE: Span = Span::from_millis(200);

/// The changes that a client asks for. Other members are of other servers.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wanted {
    #[serde(default)]
    tools_list_changed: Option<bool>,
    #[serde(default)]
    task_ids: Option<Vec<String>>,
}

impl Wanted {
    /// # Errors
    /// If the params have no such member, or too many tasks.
    pub(crate) fn of(filter: Option<&Value>) -> Result<Self, ErrorData> {
        let invalid = |why: String| ErrorData::invalid_params(format!("{LISTEN}: {why}"), None);
        let filter = filter.ok_or_else(|| invalid(format!("{FILTER} is missing")))?;
        let wanted = Self::deserialize(filter).map_err(|error| invalid(format!("{FILTER}: {error}")))?;
        if wanted.task_ids.as_ref().is_some_and(|ids| ids.len() > MAX_TASKS) {
            return Err(invalid(format!(
                "a request is for at most {MAX_TASKS} tasks; ask for the others with tasks/get"
            )));
        }
        Ok(wanted)
    }
}

/// One such request.
pub(crate) struct Subscription {
    pub(crate) calls: Calls,
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) id: RequestId,
    /// Whether the client knows tasks.
    pub(crate) has_tasks: bool,
    pub(crate) can_ask: CanAsk,
}

impl Subscription {
    /// Sends the notifications until one cannot be sent.
    pub(crate) async fn serve(&self, wanted: Wanted) -> Result<(), NoResult> {
        let shared = &self.calls.shared;
        let (mut changes, since) = (shared.parts.handle.tool_changes(), shared.parts.handle.last_position().await?);
        let (mut ids, mut tasks) = (Vec::new(), HashMap::new());
        for id in wanted.task_ids.filter(|_| self.has_tasks).unwrap_or_default() {
            // One that is not this principal's looks like one that does not exist.
            if let Some(turn) = tasks::exists(&self.calls, &id).await? {
                tasks.insert(turn, None);
                ids.push(id);
            }
        }
        let has_list = wanted.tools_list_changed == Some(true);
        let mut accepted = json!({});
        if has_list {
            accepted["toolsListChanged"] = true.into();
        }
        if !ids.is_empty() {
            accepted["taskIds"] = ids.into();
        }
        self.send("notifications/subscriptions/acknowledged", json!({ FILTER: accepted }), None).await?;
        let list = async {
            while has_list && changed(shared, &mut changes).await {
                self.send("notifications/tools/list_changed", json!({}), None).await?;
            }
            std::future::pending().await
        };
        tokio::select! {
            ended = list => ended,
            ended = self.follow(tasks, since) => ended,
        }
    }

    /// Reports these tasks: the state of each, and then the changes.
    async fn follow(&self, mut tasks: HashMap<TurnId, Option<Seen>>, since: Position) -> Result<(), NoResult> {
        let handle = &self.calls.shared.parts.handle;
        let mut pace = Pace::new();
        let mut changed: Vec<TurnId> = tasks.keys().copied().collect();
        // The commits since before the states were read.
        let mut follower = handle.follow(&self.calls.by, &self.calls.conversation()?, since).await?;
        while !tasks.is_empty() {
            for turn in std::mem::take(&mut changed) {
                let Some(seen) = tasks.get_mut(&turn) else { continue };
                handle.sleep(pace.until_next(handle.now())).await;
                let (task, counted) = tasks::read(&self.calls, &turn.to_string(), self.can_ask).await?;
                let now = Some((task.task.status, task.task.status_message.clone()));
                if *seen == now {
                    continue;
                }
                *seen = now;
                let has_ended = is_terminal(task.task.status);
                let params = serde_json::to_value(&task);
                let params = params.map_err(|_| ErrorData::internal_error("the host failed", None))?;
                self.send("notifications/tasks", params, counted).await?;
                pace.sent(handle.now());
                if has_ended {
                    tasks.remove(&turn);
                }
            }
            follower.ready().await;
            // A commit may have megabytes.
            let reserved = self.calls.unread.reserve().await;
            let item = follower.read().await.map_err(dispatch::Error::from)?;
            drop(reserved);
            changed.extend(item.as_ref().and_then(turn_of));
        }
        std::future::pending().await
    }

    async fn send(&self, method: &str, mut params: Value, counted: Option<Unsent>) -> Result<(), NoResult> {
        params["_meta"] = json!({ SUBSCRIPTION: self.id });
        let notification = ServerNotification::CustomNotification(CustomNotification::new(method, Some(params)));
        self.calls.notify(&self.peer, notification, counted).await
    }
}

/// The state of a task that a client has seen.
type Seen = (TaskStatus, Option<String>);

fn is_terminal(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
}

/// The turn that an item is about.
fn turn_of(item: &Item) -> Option<TurnId> {
    match item {
        Item::Committed(committed) => match &committed.facts {
            Facts::Turn { turn, .. } => Some(*turn),
            _ => None,
        },
        Item::Live(Live::Progress { turn, .. }) => Some(*turn),
        Item::Live(_) => None,
    }
}

/// Waits until the tools have changed. Returns false if they never change again, because the host ends. The future can be dropped:
/// the next one reports the change.
async fn changed(shared: &Shared, changes: &mut watch::Receiver<()>) -> bool {
    let has_changed = changes.clone().changed().await.is_ok();
    shared.parts.handle.sleep(SETTLE).await;
    changes.mark_unchanged();
    has_changed
}

/// Tells a client of an older revision each change of the tools. `send` returns false if the client has left.
pub(crate) async fn tell_changes<T, F: Future<Output = bool>>(
    shared: &Shared,
    mut changes: watch::Receiver<()>,
    send: impl Fn(ServerNotification) -> F,
) -> T {
    let change = || ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default());
    while changed(shared, &mut changes).await && send(change()).await {}
    std::future::pending().await
}
