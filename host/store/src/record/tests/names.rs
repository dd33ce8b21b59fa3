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
            journal::Record::Result(_) => "row_journal_result",
            journal::Record::Begun(_) => "row_journal_begun",
            journal::Record::Refused(refused) if refused.in_doubt => "row_journal_refused_in_doubt",
            journal::Record::Refused(_) => "row_journal_refused",
        }
    }
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
