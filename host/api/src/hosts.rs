//! The hosts on one store.

use dispatch::CallOfHost;
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
    /// Whether its configuration differs from that of the host that has answered, in what all hosts must have equal. The configuration of
    /// a host of another version is not compared.
    pub other_configuration: bool,
    /// The plugins that differ from those of the host that has answered: only one of the two hosts has them, or they have different
    /// components. For an upstream MCP server, the accepted tools differ. Absent if no plugins differ, or if a host has not said which
    /// it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_plugins: Vec<String>,
    /// The calls that it runs, the oldest turns first. Absent if the request did not ask for them. Calls of ephemeral turns are only in
    /// `running_calls`.
    pub calls: Option<Vec<HostCall>>,
}

/// A call that a host runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostCall {
    /// Its conversation.
    pub conversation: String,
    /// Its turn.
    pub turn: String,
    /// Its id.
    pub call: String,
    /// Its tool.
    pub tool: String,
    /// The principal who submitted the turn.
    pub caller: String,
    /// When its code first began to run. For a durable call, this may be before its last wait.
    pub since: Option<String>,
}

impl HostCall {
    fn of(call: &CallOfHost) -> Self {
        Self {
            conversation: call.conversation.to_string(),
            turn: call.turn.to_string(),
            call: call.call.to_string(),
            tool: call.tool.to_string(),
            caller: call.caller.to_string(),
            since: call.since.map(rfc3339),
        }
    }
}

impl HostList {
    /// The list that a host answers with. `calls` are those of all hosts, if the request asked for them.
    #[must_use]
    pub fn of(hosts: &[RunningHost], answers: OwnerId, calls: Option<&[CallOfHost]>) -> Self {
        let own = hosts.iter().find(|host| host.owner == answers);
        let of_host = |host: &RunningHost, calls: &[CallOfHost]| {
            calls.iter().filter(|call| call.owner == host.owner).map(HostCall::of).collect()
        };
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
            other_configuration: own.is_some_and(|own| other_configuration(own, host)),
            other_plugins: own.map_or_else(Vec::new, |own| other_plugins(own, host)),
            calls: calls.map(|calls| of_host(host, calls)),
        };
        Self { hosts: hosts.iter().map(view).collect() }
    }
}

fn other_configuration(own: &RunningHost, host: &RunningHost) -> bool {
    let both = own.config.as_ref().zip(host.config.as_ref());
    both.is_some_and(|(own, other)| own != other)
}

fn other_plugins(own: &RunningHost, host: &RunningHost) -> Vec<String> {
    let both = own.plugins.as_ref().zip(host.plugins.as_ref());
    let differing = both.map_or_else(Vec::new, |(own, other)| own.differing(other));
    differing.iter().map(ToString::to_string).collect()
}

/// A host that takes no new turns.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drained {
    /// Its name among the hosts on the database. Absent if only one host can use the store.
    pub host: Option<String>,
    /// Always true.
    pub draining: bool,
    /// The calls that it still runs.
    pub running_calls: u64,
}

#[cfg(test)]
mod tests {
    use dispatch::ports::LivePlugins;
    use domain::{CallId, ConversationId, Digest, PluginName, PrincipalId, Timestamp, TurnId};

    use super::*;

    #[test]
    fn list_says_who_answers_and_who_differs() {
        let host = |name: &str, owner, config: &str, plugins: Option<&[&str]>| RunningHost {
            name: name.to_owned(),
            owner: OwnerId::from_bits(owner),
            version: "1".to_owned(),
            address: None,
            config: (!config.is_empty()).then(|| Digest::of(config)),
            plugins: plugins.map(|names| {
                LivePlugins(names.iter().map(|name| (PluginName::new(name).unwrap(), Digest::of(name))).collect())
            }),
            since: Timestamp::from_millis(1_000),
            renewed: Timestamp::from_millis(2_000),
            running_calls: 3,
            is_draining: owner == 2,
        };
        let hosts = [
            host("a", 1, "x", Some(&["p"])),
            host("b", 2, "x", None),
            host("c", 3, "y", Some(&["p"])),
            host("d", 4, "x", Some(&["q", "p"])),
            // Of another version.
            host("e", 5, "", None),
        ];
        let said = |answers| {
            let list = HostList::of(&hosts, OwnerId::from_bits(answers), None);
            let flags =
                |host: &HostView| (host.answers, host.draining, host.other_configuration, host.other_plugins.join(" "));
            list.hosts.iter().map(flags).collect::<Vec<_>>()
        };
        let flags =
            |answers, draining, configuration, plugins: &str| (answers, draining, configuration, plugins.to_owned());
        assert_eq!(
            said(1),
            [
                flags(true, false, false, ""),
                flags(false, true, false, ""),
                flags(false, false, true, ""),
                flags(false, false, false, "q"),
                flags(false, false, false, ""),
            ]
        );
        assert_eq!(
            said(3),
            [
                flags(false, false, true, ""),
                flags(false, true, true, ""),
                flags(true, false, false, ""),
                flags(false, false, true, "q"),
                flags(false, false, false, ""),
            ]
        );
        let call = CallOfHost {
            owner: OwnerId::from_bits(2),
            conversation: ConversationId::new("c").unwrap(),
            turn: TurnId::from_bits(7),
            call: CallId::new("x").unwrap(),
            tool: "sleep".into(),
            caller: PrincipalId::new("ann").unwrap(),
            since: Some(Timestamp::from_millis(3_000)),
        };
        let list = HostList::of(&hosts, OwnerId::from_bits(1), Some(&[call])).hosts;
        assert_eq!(list[0].renewed_at, "1970-01-01T00:00:02.000Z");
        let calls = |host: &HostView| host.calls.iter().flatten().map(|call| call.call.clone()).collect::<Vec<_>>();
        assert_eq!(list.iter().map(calls).collect::<Vec<_>>(), [vec![], vec!["x".to_owned()], vec![], vec![], vec![]]);
    }
}
