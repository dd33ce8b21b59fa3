//! Entries of the audit. The audit is the log, read in the order of its commits. Entries are not stored: they are
//! derived from the facts on each read, so they always match what happened.

mod action;

use domain::{
    Call, CallId, ConversationId, Digest, Event, Json, LinkId, Outcome, OwnerId, PluginName, PrincipalId, StandingId,
    SuspensionId, Timestamp, Turn, TurnId,
    call::Running,
    event::{CallEvent, HostStarted, PluginChange, PluginEvent, TurnEnd},
    outcome::{FailureCode, OutcomeKind},
    principal::Channel,
    retention::{Removal, RemovalRule},
    standing::StandingRevoked,
    suspension::{Closed, Decision, Resolution},
};

pub use self::action::{Action, UnknownAction};
use crate::ports::{Facts, Head, Position};

/// One entry: an action, and who did it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// The principal; `system` for actions of the host.
    pub by: PrincipalId,
    /// One of a closed set: no caller and no plugin can name an action.
    pub action: Action,
    pub conversation: Option<ConversationId>,
    pub turn: Option<TurnId>,
    pub call: Option<CallId>,
    /// The tool or plugin. For a call, by the name that the request used.
    pub subject: Option<String>,
    /// The plugin of the tool.
    pub plugin: Option<PluginName>,
    /// The SHA-256 of the component's bytes.
    pub component: Option<Digest>,
    /// The digest of the tool's declaration.
    pub declaration: Option<Digest>,
    /// The SHA-256 of the arguments' exact text.
    pub arguments: Option<Digest>,
    pub suspension: Option<SuspensionId>,
    /// The digest over arguments, component and declaration. For a plugin: the digest of the component.
    pub digest: Option<Digest>,
    /// The chosen answer to a question.
    pub answer: Option<String>,
    pub attempt: Option<u32>,
    /// The run of the host.
    pub owner: Option<OwnerId>,
    pub outcome: Option<Ended>,
    /// The code of what failed.
    pub code: Option<FailureCode>,
    /// The SHA-256 of the result's exact text.
    pub result: Option<Digest>,
    /// The arguments that the approver gave instead of the submitted ones.
    pub edited: Option<Json>,
    pub comment: Option<String>,
    /// The rule or the policy that decided about the call.
    pub rule: Option<String>,
    /// Which standing approval was given, used or revoked.
    pub standing: Option<StandingId>,
    /// To whom authority was delegated, or whose authority ended.
    pub to: Option<PrincipalId>,
    /// The link that was made or used, or the link that the principal used.
    pub link: Option<LinkId>,
    /// The channel that the principal used, if that is known.
    pub via: Option<Channel>,
    /// The webhook that receives the link.
    pub webhook: Option<String>,
    /// The end of its validity.
    pub until: Option<Timestamp>,
    pub version: Option<String>,
    /// The tools that are live.
    pub tools: Vec<String>,
    /// Why a plugin was refused.
    pub findings: Vec<String>,
    /// The grants that were in force, or that were added.
    pub grants: Vec<String>,
    /// The grants that were removed.
    pub revoked: Vec<String>,
}

/// How a call or a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Call(OutcomeKind),
    Turn(TurnEnd),
}

#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only those of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only those of this turn.
    pub turn: Option<TurnId>,
    /// Only those of this tool or plugin.
    pub subject: Option<String>,
    /// Only those of this plugin and of calls of its tools.
    pub plugin: Option<PluginName>,
    /// Only what this principal did.
    pub by: Option<PrincipalId>,
    pub action: Option<Action>,
}

impl AuditFilter {
    pub(crate) fn matches(&self, entry: &AuditEntry) -> bool {
        let of = |subject: &String| {
            entry.subject.as_ref() == Some(subject)
                || entry.plugin.as_ref().is_some_and(|name| name.as_str() == subject)
        };
        let of_plugin = |plugin: &PluginName| {
            let of_itself = entry.action.is_of_plugin() && entry.subject.as_deref() == Some(plugin.as_str());
            of_itself || entry.plugin.as_ref() == Some(plugin)
        };
        self.conversation.as_ref().is_none_or(|conversation| entry.conversation.as_ref() == Some(conversation))
            && self.turn.is_none_or(|turn| entry.turn == Some(turn))
            && self.plugin.as_ref().is_none_or(of_plugin)
            && self.subject.as_ref().is_none_or(of)
            && self.by.as_ref().is_none_or(|by| *by == entry.by)
            && self.action.is_none_or(|action| action == entry.action)
    }

    /// Whether no entry of a commit can match. Such a commit is skipped.
    pub(crate) fn passes_over(&self, facts: &Facts) -> bool {
        match facts {
            Facts::Turn { turn, .. } => self.turn.is_some_and(|only| only != *turn),
            Facts::Plugin(_) | Facts::Started(_) | Facts::Revoked(_) => {
                self.turn.is_some() || self.conversation.is_some()
            }
            Facts::Removal(removal) => {
                let is_missing = |turn| removal.turns.iter().all(|removed| removed.turn != turn);
                self.conversation.is_some() || self.turn.is_some_and(is_missing)
            }
            Facts::Removed { .. } | Facts::Ended(_) => true,
            Facts::Unreadable { turn } => self.conversation.is_some() || (self.turn.is_some() && self.turn != *turn),
        }
    }
}

/// A page of the audit.
#[derive(Debug, Clone)]
pub struct AuditPage {
    /// The entries, each with the chain entry of its commit.
    pub entries: Vec<(Head, AuditEntry)>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Position>,
    /// The head of the audit when the page was made.
    pub head: Head,
}

impl AuditEntry {
    fn new(at: Timestamp, by: PrincipalId, action: Action) -> Self {
        Self {
            at,
            by,
            action,
            conversation: None,
            turn: None,
            call: None,
            subject: None,
            plugin: None,
            component: None,
            declaration: None,
            arguments: None,
            suspension: None,
            digest: None,
            answer: None,
            attempt: None,
            owner: None,
            outcome: None,
            code: None,
            result: None,
            edited: None,
            comment: None,
            rule: None,
            standing: None,
            to: None,
            link: None,
            via: None,
            webhook: None,
            until: None,
            version: None,
            tools: Vec::new(),
            findings: Vec::new(),
            grants: Vec::new(),
            revoked: Vec::new(),
        }
    }

    fn of(turn: &Turn, at: Timestamp, by: PrincipalId, action: Action) -> Self {
        Self { conversation: Some(turn.conversation.clone()), turn: Some(turn.id), ..Self::new(at, by, action) }
    }

    /// About a call, with everything that it is pinned to.
    fn about(turn: &Turn, call: &Call, at: Timestamp, by: PrincipalId, action: Action) -> Self {
        let pinned = call.pinned.as_ref();
        Self {
            call: Some(call.id.clone()),
            subject: Some(call.tool.to_string()),
            plugin: pinned.map(|pinned| pinned.plugin.clone()),
            component: pinned.map(|pinned| pinned.component),
            declaration: pinned.map(|pinned| pinned.declaration),
            ..Self::of(turn, at, by, action)
        }
    }

    /// Roughly the memory that it takes beyond its fixed size.
    pub(crate) fn size(&self) -> usize {
        let lists = [&self.tools, &self.findings, &self.grants, &self.revoked];
        lists.into_iter().flatten().map(String::len).sum::<usize>()
            + self.edited.as_ref().map_or(0, Json::size)
            + self.comment.as_ref().map_or(0, String::len)
    }
}

/// The entries of a commit to a turn's log. `turn` is the turn after the commit.
pub(crate) fn of_turn(events: &[Event], turn: &Turn) -> Vec<AuditEntry> {
    events.iter().flat_map(|event| denied_by_host(event, turn).into_iter().chain(of_event(event, turn))).collect()
}

/// The entry of a denial that no person decided. A person's denial is the entry of their answer.
fn denied_by_host(event: &Event, turn: &Turn) -> Option<AuditEntry> {
    let Event::Call { call, event: CallEvent::Settled { outcome: Outcome::Denied(reason), at, .. } } = event else {
        return None;
    };
    let call = turn.calls.get(call.get())?;
    let last = call.suspensions.last().and_then(|(_, closed)| closed.as_ref()?.resolution());
    if last.is_some_and(|answer| answer.decision == Decision::Deny) {
        return None;
    }
    Some(AuditEntry {
        rule: call.ruled_by.as_deref().map(str::to_owned),
        comment: reason.clone(),
        ..AuditEntry::about(turn, call, *at, PrincipalId::system(), Action::Deny)
    })
}

fn of_event(event: &Event, turn: &Turn) -> Option<AuditEntry> {
    Some(match event {
        Event::TurnStarted { caller, at, .. } => AuditEntry::of(turn, *at, caller.clone(), Action::TurnStarted),
        Event::Call { call, event } => return of_call(event, turn.calls.get(call.get())?, turn),
        Event::TurnCancelled { by, at } => AuditEntry::of(turn, *at, by.clone(), Action::Cancel),
        Event::TurnSettled { end, at } => AuditEntry {
            outcome: Some(Ended::Turn(*end)),
            ..AuditEntry::of(turn, *at, PrincipalId::system(), Action::TurnSettled)
        },
    })
}

fn of_call(event: &CallEvent, call: &Call, turn: &Turn) -> Option<AuditEntry> {
    let system = PrincipalId::system;
    Some(match event {
        CallEvent::Requested { arguments, ruled_by, .. } => AuditEntry {
            rule: ruled_by.as_deref().map(str::to_owned),
            arguments: Some(Digest::of(arguments.as_str())),
            ..AuditEntry::about(turn, call, turn.started_at, turn.caller.clone(), Action::CallRequested)
        },
        CallEvent::Covered { standing, approved, at } => AuditEntry {
            standing: Some(standing.id),
            digest: Some(*approved),
            ..AuditEntry::about(turn, call, *at, standing.by.clone(), Action::StandingUse)
        },
        CallEvent::Voted { suspension, vote } => AuditEntry {
            suspension: Some(*suspension),
            digest: Some(vote.binding),
            edited: vote.arguments.clone(),
            comment: vote.comment.clone(),
            link: vote.link,
            via: vote.via(),
            ..AuditEntry::about(turn, call, vote.at, vote.by.clone(), Action::Vote)
        },
        CallEvent::Delegated { suspension, delegation } => AuditEntry {
            suspension: Some(*suspension),
            to: Some(delegation.to.clone()),
            comment: delegation.comment.clone(),
            link: delegation.link,
            via: delegation.via(),
            ..AuditEntry::about(turn, call, delegation.at, delegation.from.clone(), Action::Delegate)
        },
        CallEvent::AuthorityRevoked { suspension, principal, at } => AuditEntry {
            suspension: Some(*suspension),
            to: Some(principal.clone()),
            comment: Some(format!("{principal} was revoked, so its votes and delegations no longer count")),
            ..AuditEntry::about(turn, call, *at, system(), Action::AuthorityRevoke)
        },
        CallEvent::LinkMade { suspension, link, at } => AuditEntry {
            suspension: Some(*suspension),
            link: Some(link.id),
            to: Some(link.to.clone()),
            webhook: link.webhook.as_deref().map(str::to_owned),
            until: Some(link.expires_at),
            ..AuditEntry::about(turn, call, *at, link.by.clone(), Action::LinkMade)
        },
        CallEvent::LinkUsed { suspension, link, by, at } => AuditEntry {
            suspension: Some(*suspension),
            link: Some(*link),
            ..AuditEntry::about(turn, call, *at, by.clone(), Action::LinkUsed)
        },
        CallEvent::Escalated { suspension, at } => AuditEntry {
            suspension: Some(*suspension),
            ..AuditEntry::about(turn, call, *at, system(), Action::Escalate)
        },
        CallEvent::Resolved { suspension, by, at, approved, .. } => {
            let entry = resolved(turn, call, *suspension, *at, by.clone())?;
            AuditEntry { digest: approved.or(entry.digest), ..entry }
        }
        CallEvent::Expired { suspension, approved, at } => {
            let entry = resolved(turn, call, *suspension, *at, system())?;
            // The audit shows a timeout approval as an approval.
            AuditEntry { action: if approved.is_some() { Action::Approve } else { entry.action }, ..entry }
        }
        CallEvent::Started { running, at } => AuditEntry {
            digest: call.pinned.as_ref().map(|pinned| pinned.binding(&call.arguments)),
            ..runs(turn, call, running, *at, Action::CallStarted)
        },
        CallEvent::Resumed { running, at } => runs(turn, call, running, *at, Action::CallResumed),
        CallEvent::Settled { outcome, at, .. } => settled(turn, call, outcome, *at),
        // The entries of the request, the answer and the outcome contain this.
        CallEvent::Suspended { .. } | CallEvent::ClientAwaited { .. } | CallEvent::LeaseExtended { .. } => return None,
    })
}

/// How a suspension was closed.
fn resolved(turn: &Turn, call: &Call, id: SuspensionId, at: Timestamp, by: PrincipalId) -> Option<AuditEntry> {
    let (suspension, closed) = call.suspension(id)?;
    let resolution = closed.as_ref().and_then(Closed::resolution);
    let (action, answer) = match resolution.map(|resolution| &resolution.decision) {
        None => (Action::Expired, None),
        Some(Decision::Approve) => (Action::Approve, None),
        Some(Decision::Deny) => (Action::Deny, None),
        Some(Decision::Result) => (Action::Result, None),
        Some(Decision::Error) => (Action::Error, None),
        Some(Decision::Answer(answer)) => (Action::Answer, Some(answer.to_string())),
    };
    // A step that the policy denied.
    let by_host = action == Action::Deny && by == PrincipalId::system();
    Some(AuditEntry {
        suspension: Some(id),
        digest: Some(suspension.digest),
        answer,
        rule: by_host.then(|| suspension.about()?.by.as_deref().map(str::to_owned)).flatten(),
        edited: resolution.and_then(|resolution| resolution.arguments.clone()),
        comment: resolution.and_then(|resolution| resolution.comment.clone()),
        standing: resolution.and_then(|resolution| Some(resolution.standing.as_ref()?.id)),
        link: resolution.and_then(|resolution| resolution.link),
        via: resolution.and_then(Resolution::via),
        ..AuditEntry::about(turn, call, at, by, action)
    })
}

/// A run of a guest begins.
fn runs(turn: &Turn, call: &Call, running: &Running, at: Timestamp, action: Action) -> AuditEntry {
    let entry = AuditEntry::about(turn, call, at, PrincipalId::system(), action);
    AuditEntry { attempt: Some(running.attempt), owner: Some(running.owner), ..entry }
}

fn settled(turn: &Turn, call: &Call, outcome: &Outcome, at: Timestamp) -> AuditEntry {
    let result = if let Outcome::Ok { value, .. } = outcome { Some(Digest::of(value.as_str())) } else { None };
    let code = if let Outcome::Failed(failure) = outcome { Some(failure.code) } else { None };
    let entry = AuditEntry::about(turn, call, at, PrincipalId::system(), Action::CallSettled);
    let attempt = (call.attempts > 0).then_some(call.attempts);
    AuditEntry { outcome: Some(Ended::Call(outcome.kind())), code, result, attempt, ..entry }
}

/// The entry of a fact about a plugin.
pub(crate) fn of_plugin(event: &PluginEvent) -> AuditEntry {
    let by = event.by.clone().unwrap_or_else(PrincipalId::system);
    let (action, tools, findings) = match &event.change {
        PluginChange::Loaded { tools } => {
            (Action::PluginLoaded, tools.iter().map(ToString::to_string).collect(), vec![])
        }
        PluginChange::Rejected { findings } => (Action::PluginRejected, vec![], findings.clone()),
        PluginChange::Unloaded => (Action::PluginUnloaded, vec![], vec![]),
    };
    AuditEntry {
        subject: Some(event.plugin.to_string()),
        plugin: Some(event.plugin.clone()),
        component: Some(event.component),
        digest: Some(event.component),
        tools,
        findings,
        grants: event.grants.clone(),
        ..AuditEntry::new(event.at, by, action)
    }
}

/// The entry of a revoked standing approval.
pub(crate) fn of_revocation(revoked: &StandingRevoked) -> AuditEntry {
    let entry = AuditEntry::new(revoked.at, revoked.by.clone(), Action::StandingRevoke);
    // The host revokes one for this reason only.
    let by_host = revoked.by == PrincipalId::system();
    let comment = by_host.then(|| "the principal who gave it was revoked".to_owned());
    AuditEntry { standing: Some(revoked.id), comment, ..entry }
}

/// The entries of a removal: one for each turn. It names no conversation, because it must not keep more than it removes.
pub(crate) fn of_removal(removal: &Removal) -> Vec<AuditEntry> {
    let rule = removal.rule.to_string();
    let entry = || AuditEntry::new(removal.at, PrincipalId::system(), Action::TurnRemoved);
    let mut entries: Vec<_> = removal
        .turns
        .iter()
        .map(|removed| AuditEntry { turn: Some(removed.turn), rule: Some(rule.clone()), ..entry() })
        .collect();
    if removal.rule == RemovalRule::Salvage {
        let (action, lost) = (Action::StoreSalvaged, &removal.lost);
        let comment = format!("lost: {} turns, and the commits at the positions {lost:?}", removal.turns.len());
        let comment = Some(comment);
        entries.push(AuditEntry {
            rule: Some(rule),
            comment,
            ..AuditEntry::new(removal.at, PrincipalId::system(), action)
        });
    }
    entries
}

/// The entry of a commit whose record is damaged.
pub(crate) fn of_damage(turn: Option<TurnId>) -> AuditEntry {
    let entry = AuditEntry::new(Timestamp::from_millis(0), PrincipalId::system(), Action::RecordUnreadable);
    AuditEntry { turn, ..entry }
}

/// The entries of a start of a host.
pub(crate) fn of_start(start: &HostStarted) -> Vec<AuditEntry> {
    let entry =
        |action| AuditEntry { owner: Some(start.owner), ..AuditEntry::new(start.at, PrincipalId::system(), action) };
    let started =
        AuditEntry { version: Some(start.version.clone()), grants: start.grants.clone(), ..entry(Action::HostStarted) };
    let changed = (!start.added.is_empty() || !start.removed.is_empty()).then(|| AuditEntry {
        grants: start.added.clone(),
        revoked: start.removed.clone(),
        ..entry(Action::GrantsChanged)
    });
    std::iter::once(started).chain(changed).collect()
}
