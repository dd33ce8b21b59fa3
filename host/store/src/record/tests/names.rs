//! The golden file of each value. The archives in `tests/fixtures` are compared by these names.

use dispatch::ports::{DeliveryState, EndedTurn, Report, RunLog};
use domain::{
    event::{HostStarted, PluginChange, PluginEvent},
    journal::{self, Entry},
    retention::{Removal, RemovalRule},
    standing::StandingRevoked,
    suspension::{Audience, SuspensionState},
};

use super::*;

/// A record whose golden file has this name, without its version.
pub(crate) trait Named {
    fn name(&self) -> &'static str;
}

impl Named for SuspensionRow {
    fn name(&self) -> &'static str {
        match self.state {
            _ if self.signal.is_some() => "row_suspension_signal",
            SuspensionState::Ended(_) => "row_suspension_ended",
            SuspensionState::Open => "row_suspension",
        }
    }
}

impl Named for DeliveryRow {
    fn name(&self) -> &'static str {
        match (&self.report, &self.state) {
            (Report::TurnSettled(_), _) => "row_delivery_settled",
            (Report::Suspension(..), DeliveryState::Delivered) => "row_delivery_made",
            (Report::Suspension(..), DeliveryState::Failed) => "row_delivery_failed",
            (Report::Suspension(..), DeliveryState::Pending { .. }) if self.last.is_some() => "row_delivery_again",
            (Report::Suspension(..), DeliveryState::Pending { .. }) => "row_delivery",
        }
    }
}

impl Named for PluginEvent {
    fn name(&self) -> &'static str {
        match (&self.change, self.by.is_some() || !self.grants.is_empty()) {
            (PluginChange::Loaded { .. }, false) => "plugin_loaded",
            (PluginChange::Loaded { .. }, true) => "plugin_loaded_full",
            (PluginChange::Rejected { .. }, false) => "plugin_rejected",
            (PluginChange::Rejected { .. }, true) => "plugin_rejected_full",
            (PluginChange::Unloaded, false) => "plugin_unloaded",
            (PluginChange::Unloaded, true) => "plugin_unloaded_full",
        }
    }
}

impl Named for HostStarted {
    fn name(&self) -> &'static str {
        let grants = [&self.grants, &self.added, &self.removed];
        if grants.iter().all(|list| list.is_empty()) { "host_started" } else { "host_started_full" }
    }
}

impl Named for StandingRow {
    fn name(&self) -> &'static str {
        "row_standing"
    }
}

impl Named for StandingRevoked {
    fn name(&self) -> &'static str {
        "standing_revoked"
    }
}

impl Named for EndedTurn {
    fn name(&self) -> &'static str {
        "row_ended"
    }
}

impl Named for Removal {
    fn name(&self) -> &'static str {
        match self.rule {
            RemovalRule::Age { .. } => "turns_removed_age",
            RemovalRule::Tool { .. } => "turns_removed_tool",
            RemovalRule::Bytes { .. } => "turns_removed_bytes",
            RemovalRule::Salvage => "turns_lost_salvage",
        }
    }
}

impl Named for Audience {
    fn name(&self) -> &'static str {
        if self.without.is_empty() && self.delegates.is_empty() { "row_audience" } else { "row_audience_full" }
    }
}

impl Named for RunLog {
    fn name(&self) -> &'static str {
        "row_run_log"
    }
}

impl Named for Entry {
    fn name(&self) -> &'static str {
        match &self.record {
            journal::Record::Result(_) if self.salt.is_some() => "row_journal_first",
            journal::Record::Result(_) if self.transferred.is_some() => "row_journal_request",
            journal::Record::Result(_) => "row_journal_result",
            journal::Record::Begun(_) => "row_journal_begun",
            journal::Record::Refused(refused) if refused.in_doubt => "row_journal_refused_in_doubt",
            journal::Record::Refused(_) => "row_journal_refused",
        }
    }
}

/// Has no wildcard, so that a new event does not compile until it has a golden file.
pub(crate) fn file_of(event: &Event) -> &'static str {
    match event {
        Event::TurnStarted { parent: Some(_), .. } => "turn_started_nested",
        Event::TurnStarted { parent: None, .. } => "turn_started",
        Event::Call { event: CallEvent::Requested { origin: Some(_), .. }, .. } => "call_requested_origin",
        Event::Call { event: CallEvent::Requested { ruled_by: None, .. }, .. } => "call_requested",
        Event::Call { event: CallEvent::Requested { ruled_by: Some(_), .. }, .. } => "call_requested_ruled",
        Event::Call { event: CallEvent::Covered { .. }, .. } => "call_approved",
        Event::Call { event: CallEvent::Voted { vote, .. }, .. } if vote.channel.is_some() => "call_voted_channel",
        Event::Call { event: CallEvent::Voted { vote, .. }, .. } if vote.link.is_some() => "call_voted_by_link",
        Event::Call { event: CallEvent::Voted { vote, .. }, .. } if vote.needs.is_empty() => "call_voted_without_needs",
        Event::Call { event: CallEvent::Voted { .. }, .. } => "call_voted",
        Event::Call { event: CallEvent::Delegated { delegation, .. }, .. } if delegation.channel.is_some() => {
            "suspension_delegated_channel"
        }
        Event::Call { event: CallEvent::Delegated { delegation, .. }, .. } if delegation.link.is_some() => {
            "suspension_delegated_by_link"
        }
        Event::Call { event: CallEvent::Delegated { delegation, .. }, .. } if delegation.needs.is_empty() => {
            "suspension_delegated_without_needs"
        }
        Event::Call { event: CallEvent::Delegated { .. }, .. } => "suspension_delegated",
        Event::Call { event: CallEvent::AuthorityRevoked { .. }, .. } => "authority_revoked",
        Event::Call { event: CallEvent::LinkMade { .. }, .. } => "link_made",
        Event::Call { event: CallEvent::LinkUsed { .. }, .. } => "link_used",
        Event::Call { event: CallEvent::Escalated { .. }, .. } => "suspension_escalated",
        Event::Call { event: CallEvent::Resumed { .. }, .. } => "call_resumed",
        Event::Call { event: CallEvent::Suspended { suspension }, .. } => suspended_file_of(suspension),
        Event::Call { event: CallEvent::Resolved { resolution, .. }, .. } if resolution.channel.is_some() => {
            "call_resolved_channel"
        }
        Event::Call { event: CallEvent::Resolved { resolution, .. }, .. } if resolution.link.is_some() => {
            "call_resolved_by_link"
        }
        Event::Call { event: CallEvent::Resolved { resolution, .. }, .. } if resolution.standing.is_some() => {
            "call_resolved_standing"
        }
        Event::Call { event: CallEvent::ClientAwaited { .. }, .. } => "client_awaited",
        Event::Call { event: CallEvent::Resolved { .. }, .. } => "call_resolved",
        Event::Call { event: CallEvent::Expired { .. }, .. } => "suspension_expired",
        Event::Call { event: CallEvent::Started { .. }, .. } => "call_started",
        Event::Call { event: CallEvent::LeaseExtended { .. }, .. } => "lease_extended",
        Event::Call { event: CallEvent::Settled { receipt: Some(receipt), .. }, .. } if receipt.journal.is_some() => {
            "call_settled_with_journal"
        }
        Event::Call { event: CallEvent::Settled { receipt: None, .. }, .. } => "call_settled",
        Event::Call { event: CallEvent::Settled { receipt: Some(_), .. }, .. } => "call_settled_with_receipt",
        Event::TurnCancelled { .. } => "turn_cancelled",
        Event::TurnSettled { .. } => "turn_settled",
    }
}

fn suspended_file_of(suspension: &Suspension) -> &'static str {
    match &suspension.body {
        SuspensionBody::External(_) => "call_suspended_external",
        SuspensionBody::RateLimit => "call_suspended_rate_limit",
        SuspensionBody::Nested(_) => "call_suspended_nested",
        _ if suspension.step.is_some() => "call_suspended_step",
        SuspensionBody::Timer => "call_suspended_step",
        SuspensionBody::Approval(ApprovalRequest { doubt: Some(Doubt::Requests(_)), .. }) => "call_suspended_doubt",
        body if demands_channels(body) => "call_suspended_channels",
        SuspensionBody::Approval(approval) if approval.asked.policy_failed => "call_suspended_policy_failed",
        SuspensionBody::Approval(approval) if approval.asked.about.by.is_some() => "call_suspended_governed",
        SuspensionBody::Approval(approval) if approval.asked.defaults.is_some() => "call_suspended_defaults",
        SuspensionBody::Approval(_) => "call_suspended_approval",
        SuspensionBody::Elicitation(_) => "call_suspended_elicitation",
        SuspensionBody::ClientExec(_) => "call_suspended_client_exec",
    }
}

fn demands_channels(body: &SuspensionBody) -> bool {
    let SuspensionBody::Approval(approval) = body else { return false };
    approval.asked.needs.iter().any(|need| !need.via.is_any())
}

/// As [`check`], of a record that belongs to no turn.
pub(super) fn check_row<T: Record + Named + PartialEq + Debug>(name: &str, row: &T) {
    assert_eq!(row.name(), name, "{row:?}");
    check(name, row, Record::write, Record::read);
}

/// The name of each golden file, in any version.
pub(crate) fn all() -> BTreeSet<String> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let versions = fs::read_dir(golden).unwrap().map(|version| version.unwrap().path());
    let files = versions.flat_map(|version| fs::read_dir(version).unwrap());
    files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}
