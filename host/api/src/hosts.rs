//! The hosts on one store.

use dispatch::ports::RunningHost;
use domain::OwnerId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rfc3339;

/// The hosts on one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostList {
    /// Those that are alive, by name. Empty if only one host can use the store.
    pub hosts: Vec<HostView>,
}

/// A host that is alive.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostView {
    /// Its name, as `store.host` in its configuration says.
    pub name: String,
    /// This run of it.
    pub id: String,
    /// Whether it has answered this request.
    pub answers: bool,
    /// The version of the program.
    pub version: String,
    /// The address that it listens on. Absent if it serves no HTTP.
    pub address: Option<String>,
    /// When it started.
    pub since: String,
    /// When it last renewed its lease.
    pub renewed_at: String,
    /// The calls that it runs.
    pub running_calls: u64,
    /// Whether it takes no new turns.
    pub draining: bool,
    /// Whether its configuration differs from that of the host that has answered, in what all hosts must have equal.
    pub other_configuration: bool,
}

impl HostList {
    /// The list that a host answers with.
    #[must_use]
    pub fn of(hosts: &[RunningHost], answers: OwnerId) -> Self {
        let own = hosts.iter().find(|host| host.owner == answers).map(|host| host.config);
        let view = |host: &RunningHost| HostView {
            name: host.name.clone(),
            id: host.owner.to_string(),
            answers: host.owner == answers,
            version: host.version.clone(),
            address: host.address.clone(),
            since: rfc3339(host.since),
            renewed_at: rfc3339(host.renewed),
            running_calls: host.running_calls,
            draining: host.is_draining,
            other_configuration: own.is_some_and(|own| own != host.config),
        };
        Self { hosts: hosts.iter().map(view).collect() }
    }
}

/// A host that takes no new turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drained {
    /// Always true.
    pub draining: bool,
    /// The calls that it still runs.
    pub running_calls: u64,
}

#[cfg(test)]
mod tests {
    use domain::{Digest, Timestamp};

    use super::*;

    #[test]
    fn list_says_who_answers_and_whose_configuration_differs() {
        let host = |name: &str, owner, config: &str| RunningHost {
            name: name.to_owned(),
            owner: OwnerId::from_bits(owner),
            version: "1".to_owned(),
            address: None,
            config: Digest::of(config),
            since: Timestamp::from_millis(1_000),
            renewed: Timestamp::from_millis(2_000),
            running_calls: 3,
            is_draining: owner == 2,
        };
        let hosts = [host("a", 1, "x"), host("b", 2, "x"), host("c", 3, "y")];
        let said = |answers| {
            let list = HostList::of(&hosts, OwnerId::from_bits(answers));
            list.hosts.iter().map(|host| (host.answers, host.draining, host.other_configuration)).collect::<Vec<_>>()
        };
        assert_eq!(said(1), [(true, false, false), (false, true, false), (false, false, true)]);
        assert_eq!(said(3), [(false, false, true), (false, true, true), (true, false, false)]);
        assert_eq!(HostList::of(&hosts, OwnerId::from_bits(1)).hosts[0].renewed_at, "1970-01-01T00:00:02.000Z");
    }
}
