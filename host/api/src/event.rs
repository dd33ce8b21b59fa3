//! The events that clients follow. `turn`, `call` and `suspension` are ids in every event.

use std::fmt;

use dispatch::ports::{Progress, TurnEnding};
use domain::{
    Event as Fact, TurnId,
    event::{CallEvent, PluginChange, PluginEvent},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::suspension::untrusted;
use super::turn::{started, trusted};
use crate::{
    Approval, Content, Decision, Delegation, Executor, Level, Outcome, Parent, Receipt, Rejection, Status, Suspension,
    TurnState, Verbatim, Via, Vote, rfc3339,
};

/// One event. The members of its detail are in the same object as its name and time.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Event {
    /// The name of the event, which decides its members.
    pub event: EventName,
    /// When it happened. Absent for events that are not stored.
    pub at: Option<String>,
    /// True if the event is repeated because a client has just attached.
    pub snapshot: Option<bool>,
    /// The other members.
    #[serde(flatten)]
    pub detail: Detail,
}

/// The name of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[expect(missing_docs, reason = "`Detail` describes the events")]
pub enum EventName {
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "call.requested")]
    CallRequested,
    #[serde(rename = "call.approved")]
    CallApproved,
    #[serde(rename = "call.voted")]
    CallVoted,
    #[serde(rename = "suspension.delegated")]
    SuspensionDelegated,
    #[serde(rename = "suspension.authority_revoked")]
    AuthorityRevoked,
    #[serde(rename = "suspension.escalated")]
    SuspensionEscalated,
    #[serde(rename = "call.suspended")]
    CallSuspended,
    #[serde(rename = "call.resolved")]
    CallResolved,
    #[serde(rename = "suspension.expired")]
    SuspensionExpired,
    #[serde(rename = "call.started")]
    CallStarted,
    #[serde(rename = "call.resumed")]
    CallResumed,
    #[serde(rename = "call.settled")]
    CallSettled,
    #[serde(rename = "turn.cancelled")]
    TurnCancelled,
    #[serde(rename = "turn.settled")]
    TurnSettled,
    #[serde(rename = "call.progress")]
    CallProgress,
    #[serde(rename = "call.log")]
    CallLog,
    #[serde(rename = "plugin.loaded")]
    PluginLoaded,
    #[serde(rename = "plugin.rejected")]
    PluginRejected,
    #[serde(rename = "plugin.unloaded")]
    PluginUnloaded,
    #[serde(rename = "record.unreadable")]
    RecordUnreadable,
}

/// The word in JSON.
impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl EventName {
    /// The name of a fact about a turn. `None` for facts that only the host uses.
    #[must_use]
    pub const fn of(fact: &Fact) -> Option<Self> {
        Some(match fact {
            Fact::TurnStarted { .. } => Self::TurnStarted,
            Fact::TurnCancelled { .. } => Self::TurnCancelled,
            Fact::TurnSettled { .. } => Self::TurnSettled,
            Fact::Call { event, .. } => match event {
                CallEvent::Requested { .. } => Self::CallRequested,
                CallEvent::Suspended { .. } => Self::CallSuspended,
                CallEvent::Covered { .. } => Self::CallApproved,
                CallEvent::Voted { .. } => Self::CallVoted,
                CallEvent::Resolved { .. } => Self::CallResolved,
                CallEvent::Delegated { .. } => Self::SuspensionDelegated,
                CallEvent::AuthorityRevoked { .. } => Self::AuthorityRevoked,
                CallEvent::Escalated { .. } => Self::SuspensionEscalated,
                CallEvent::Expired { .. } => Self::SuspensionExpired,
                CallEvent::Started { .. } => Self::CallStarted,
                CallEvent::Resumed { .. } => Self::CallResumed,
                CallEvent::Settled { .. } => Self::CallSettled,
                CallEvent::ClientAwaited { .. }
                | CallEvent::LinkMade { .. }
                | CallEvent::LinkUsed { .. }
                | CallEvent::LeaseExtended { .. } => return None,
            },
        })
    }
}

/// The members of each event.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "a member means what the member of this name in `Turn`, `Call` or `Suspension` means")]
pub enum Detail {
    /// `turn.started`
    Started {
        turn: String,
        conversation: String,
        caller: String,
        rejection: Rejection,
        context: Option<Verbatim>,
        parent: Option<Parent>,
    },
    /// `call.requested`
    Requested {
        turn: String,
        call: String,
        tool: String,
        arguments: Verbatim,
        executor: Option<Executor>,
        approval: Option<Approval>,
        plugin: Option<String>,
        component: Option<String>,
        rule: Option<String>,
    },
    /// `call.approved`: a standing approval approved the call
    Approved { turn: String, call: String, standing: String, by: String },
    /// `call.voted`: one of several approvals. The call still waits
    Voted {
        turn: String,
        call: String,
        suspension: String,
        #[serde(flatten)]
        vote: Vote,
    },
    /// `suspension.delegated`
    Delegated {
        turn: String,
        call: String,
        suspension: String,
        #[serde(flatten)]
        delegation: Delegation,
    },
    /// `suspension.authority_revoked`: the votes and delegations of a revoked principal no longer count
    AuthorityRevoked { turn: String, call: String, suspension: String, principal: String },
    /// `suspension.escalated`
    Escalated { turn: String, call: String, suspension: String },
    /// `call.suspended`
    Suspended(Box<Suspension>),
    /// `call.resolved`
    Resolved {
        turn: String,
        call: String,
        suspension: String,
        by: String,
        #[schema(value_type = String)]
        decision: Decision,
        data: Option<Verbatim>,
        /// False if the data comes from a client or an external system.
        trusted: Option<bool>,
        arguments: Option<Verbatim>,
        /// True if an approver edited the arguments.
        edited: Option<bool>,
        comment: Option<String>,
        standing: Option<String>,
        via: Option<Via>,
    },
    /// `suspension.expired`
    Expired { turn: String, call: String, suspension: String },
    /// `call.started`, `call.resumed`
    Running { turn: String, call: String, tool: String, attempt: u32 },
    /// `call.settled`
    Settled {
        turn: String,
        call: String,
        tool: String,
        status: Status,
        outcome: Outcome,
        started: Option<bool>,
        trusted: Option<bool>,
        content: Content,
        /// The suspension that was withdrawn because the call ended.
        withdrawn: Option<String>,
        receipt: Option<Receipt>,
    },
    /// `turn.cancelled`
    Cancelled { turn: String, by: String },
    /// `turn.settled`. Events of all turns name the conversation and the caller
    Ended { turn: String, conversation: Option<String>, caller: Option<String>, state: TurnState },
    /// `call.progress`, not stored
    Progress { turn: String, call: String, message: String, fraction: Option<f64>, data: Option<Verbatim> },
    /// `call.log`, not stored as an event; the log of the call has the last lines
    Log { turn: String, call: String, run: u32, line: u64, level: Level, message: String },
    /// `plugin.loaded`, `plugin.rejected`, `plugin.unloaded`
    Plugin { plugin: String, component: String, tools: Option<Vec<String>>, findings: Option<Vec<String>> },
    /// `record.unreadable`: a stored record is damaged, so its events are missing. The turn is absent if it was about a
    /// plugin
    Unreadable { turn: Option<String> },
}

impl Event {
    /// The event of a fact about a turn. `None` for facts of the host itself.
    ///
    /// `turn` may be in a later state, so only its constant members are read.
    #[must_use]
    pub fn of(fact: &Fact, turn: &domain::Turn) -> Option<Self> {
        let name = EventName::of(fact)?;
        let id = turn.id.to_string();
        let (at, detail) = match fact {
            Fact::TurnStarted { conversation, caller, rejection, context, parent, at, .. } => {
                let detail = Detail::Started {
                    turn: id,
                    conversation: conversation.to_string(),
                    caller: caller.to_string(),
                    rejection: rejection.into(),
                    context: context.as_ref().map(Verbatim::from),
                    parent: parent.as_deref().map(Parent::from),
                };
                (*at, detail)
            }
            Fact::Call { call, event } => of_call(event, turn.calls.get(call.get())?, turn)?,
            Fact::TurnCancelled { by, at } => (*at, Detail::Cancelled { turn: id, by: by.to_string() }),
            Fact::TurnSettled { end, at } => {
                let state = (&domain::turn::TurnState::Ended(*end, *at)).into();
                (*at, Detail::Ended { turn: id, conversation: None, caller: None, state })
            }
        };
        Some(Self { event: name, at: Some(rfc3339(at)), snapshot: None, detail })
    }

    /// An open suspension, for a client that has just attached.
    #[must_use]
    pub fn snapshot(suspension: Suspension) -> Self {
        let (at, detail) = (suspension.created_at.clone(), Detail::Suspended(Box::new(suspension)));
        Self { event: EventName::CallSuspended, at: Some(at), snapshot: Some(true), detail }
    }

    /// The progress that a guest or a client reports.
    #[must_use]
    pub fn progress(turn: TurnId, call: &domain::CallId, progress: &Progress) -> Self {
        let detail = Detail::Progress {
            turn: turn.to_string(),
            call: call.to_string(),
            message: progress.message.clone(),
            fraction: progress.fraction,
            data: progress.data.as_ref().map(Verbatim::from),
        };
        Self { event: EventName::CallProgress, at: None, snapshot: None, detail }
    }

    /// A line that a guest logs: the run, and the number of the line.
    #[must_use]
    pub fn log(
        turn: TurnId,
        call: &domain::CallId,
        (run, line): (u32, u64),
        level: domain::call::Level,
        message: &str,
    ) -> Self {
        let (turn, call, level, message) = (turn.to_string(), call.to_string(), (&level).into(), message.to_owned());
        let detail = Detail::Log { turn, call, run, line, level, message };
        Self { event: EventName::CallLog, at: None, snapshot: None, detail }
    }

    /// The record of a commit is damaged.
    #[must_use]
    pub fn unreadable(turn: Option<TurnId>) -> Self {
        let detail = Detail::Unreadable { turn: turn.as_ref().map(ToString::to_string) };
        Self { event: EventName::RecordUnreadable, at: None, snapshot: None, detail }
    }

    /// A turn ended, for those who follow all turns.
    #[must_use]
    pub fn ended(ending: &TurnEnding) -> Self {
        let detail = Detail::Ended {
            turn: ending.turn.to_string(),
            conversation: Some(ending.conversation.to_string()),
            caller: Some(ending.caller.to_string()),
            state: (&domain::turn::TurnState::Ended(ending.end, ending.at)).into(),
        };
        Self { event: EventName::TurnSettled, at: Some(rfc3339(ending.at)), snapshot: None, detail }
    }

    /// A plugin was loaded, rejected or unloaded.
    #[must_use]
    pub fn plugin(fact: &PluginEvent) -> Self {
        let (name, tools, findings) = match &fact.change {
            PluginChange::Loaded { tools } => {
                (EventName::PluginLoaded, Some(tools.iter().map(ToString::to_string).collect()), None)
            }
            PluginChange::Rejected { findings } => (EventName::PluginRejected, None, Some(findings.clone())),
            PluginChange::Unloaded => (EventName::PluginUnloaded, None, None),
        };
        let (plugin, component) = (fact.plugin.to_string(), fact.component.to_string());
        let detail = Detail::Plugin { plugin, component, tools, findings };
        Self { event: name, at: Some(rfc3339(fact.at)), snapshot: None, detail }
    }
}

fn of_call(event: &CallEvent, call: &domain::Call, turn: &domain::Turn) -> Option<(domain::Timestamp, Detail)> {
    let id = turn.id.to_string();
    Some(match event {
        CallEvent::Requested { id: call, tool, arguments, pinned, ruled_by, .. } => {
            let pinned = pinned.as_deref();
            let detail = Detail::Requested {
                turn: id,
                call: call.to_string(),
                tool: tool.to_string(),
                arguments: arguments.into(),
                executor: pinned.map(|pinned| (&pinned.executor).into()),
                approval: pinned.map(|pinned| (&pinned.approval).into()),
                plugin: pinned.map(|pinned| pinned.plugin.to_string()),
                component: pinned.map(|pinned| pinned.component.to_string()),
                rule: ruled_by.as_deref().map(str::to_owned),
            };
            (turn.started_at, detail)
        }
        CallEvent::Suspended { suspension: opened } => {
            (opened.created_at, Detail::Suspended(Box::new(Suspension::new(turn, call, opened, None))))
        }
        CallEvent::Resolved { suspension, resolution, by, at, .. } => {
            let detail = Detail::Resolved {
                turn: id,
                call: call.id.to_string(),
                suspension: suspension.to_string(),
                by: by.to_string(),
                decision: Decision(resolution.decision.clone()),
                data: resolution.data.as_ref().map(Verbatim::from),
                trusted: untrusted(resolution),
                arguments: resolution.arguments.as_ref().map(Verbatim::from),
                edited: resolution.arguments.is_some().then_some(true),
                comment: resolution.comment.clone(),
                standing: resolution.standing.as_ref().map(|standing| standing.id.to_string()),
                via: resolution.via().map(Via),
            };
            (*at, detail)
        }
        CallEvent::Covered { standing, at, .. } => {
            let call = call.id.to_string();
            let (standing, by) = (standing.id.to_string(), standing.by.to_string());
            (*at, Detail::Approved { turn: id, call, standing, by })
        }
        CallEvent::Voted { suspension, vote } => {
            let (call, suspension) = (call.id.to_string(), suspension.to_string());
            (vote.at, Detail::Voted { turn: id, call, suspension, vote: vote.as_ref().into() })
        }
        CallEvent::Delegated { suspension, delegation } => {
            let (call, suspension) = (call.id.to_string(), suspension.to_string());
            (delegation.at, Detail::Delegated { turn: id, call, suspension, delegation: delegation.as_ref().into() })
        }
        CallEvent::AuthorityRevoked { suspension, principal, at } => {
            let (call, suspension) = (call.id.to_string(), suspension.to_string());
            (*at, Detail::AuthorityRevoked { turn: id, call, suspension, principal: principal.to_string() })
        }
        CallEvent::Escalated { suspension, at } => {
            (*at, Detail::Escalated { turn: id, call: call.id.to_string(), suspension: suspension.to_string() })
        }
        CallEvent::Expired { suspension, at, .. } => {
            (*at, Detail::Expired { turn: id, call: call.id.to_string(), suspension: suspension.to_string() })
        }
        CallEvent::Started { running, at } | CallEvent::Resumed { running, at } => {
            let (tool, call) = (call.tool.to_string(), call.id.to_string());
            (*at, Detail::Running { turn: id, call, tool, attempt: running.attempt })
        }
        CallEvent::Settled { outcome, receipt, at } => (*at, settled(id, call, outcome, receipt.as_ref())),
        CallEvent::ClientAwaited { .. }
        | CallEvent::LinkMade { .. }
        | CallEvent::LinkUsed { .. }
        | CallEvent::LeaseExtended { .. } => return None,
    })
}

fn withdrawn(closed: Option<&domain::suspension::Closed>) -> bool {
    closed.is_some_and(|closed| closed.how == domain::suspension::ClosedAs::Withdrawn)
}

fn settled(turn: String, call: &domain::Call, outcome: &domain::Outcome, receipt: Option<&domain::Receipt>) -> Detail {
    let ok = matches!(outcome, domain::Outcome::Ok { .. });
    Detail::Settled {
        turn,
        call: call.id.to_string(),
        tool: call.tool.to_string(),
        status: Status(if ok { domain::outcome::Status::Resolved } else { domain::outcome::Status::Errored }),
        outcome: Outcome(outcome.kind()),
        started: started(call, outcome),
        trusted: trusted(call, Some(outcome)),
        content: Content::new(call, outcome),
        withdrawn: call
            .suspensions
            .last()
            .filter(|(_, closed)| withdrawn(closed.as_ref()))
            .map(|(s, _)| s.id.to_string()),
        receipt: receipt.map(Receipt::from),
    }
}
