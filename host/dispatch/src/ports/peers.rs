//! The other hosts that use the same store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::{ConversationId, Digest, OwnerId, PluginName, PrincipalId, Timestamp, ToolName, TurnId};

use super::fault::StoreFault;
use super::footprint::Footprint;

/// The knowledge of a host about the other hosts on its store. The functions have the answers of a store that only one host uses.
///
/// A host is alive from before its first commit until it leaves, or until another host finds that its lease has ended. Then its
/// run has ended forever: it commits nothing more, and its calls can be recovered.
#[async_trait]
pub trait Peers: Send + Sync {
    /// Whether other hosts may commit at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// The part of the work of all hosts that this host does.
    fn share(&self) -> Share {
        Share::ALL
    }

    /// Waits for news about other hosts. Safe to cancel: news that were not returned are returned next.
    async fn news(&self) -> News {
        std::future::pending().await
    }

    /// Those of these runs of hosts that have ended. The caller's own run is not among them.
    async fn ended_hosts(&self, owners: Vec<OwnerId>) -> Result<Vec<OwnerId>, StoreFault> {
        Ok(owners)
    }

    /// The hosts that are alive, by name. Empty if only one host uses the store.
    async fn hosts(&self) -> Result<Vec<RunningHost>, StoreFault> {
        Ok(Vec::new())
    }

    /// Tells the other hosts how many calls this host runs, with the next renewal of its lease.
    fn report(&self, _running_calls: usize) {}

    /// Tells the other hosts which plugins are live at this host, with the next renewal of its lease.
    fn report_plugins(&self, _live: LivePlugins) {}

    /// Tells the other hosts that this host takes no new calls, with the next renewal of its lease.
    fn drain(&self) {}

    /// The tools that clients at other hosts carry out for a conversation.
    async fn attached(&self, _conversation: &ConversationId) -> Result<Vec<ToolName>, StoreFault> {
        Ok(Vec::new())
    }

    /// Replaces the tools that clients at this host carry out for a conversation.
    async fn attach(&self, _conversation: &ConversationId, _tools: Vec<ToolName>) -> Result<(), StoreFault> {
        Ok(())
    }

    /// The usage of the open turns of a principal, or of all principals. `None`: the store does not count it, because the only
    /// host does.
    async fn open_turns(&self, _of: Option<&PrincipalId>) -> Result<Option<Footprint>, StoreFault> {
        Ok(None)
    }
}

/// A host that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningHost {
    pub name: String,
    /// This run of it.
    pub owner: OwnerId,
    /// The version of the program.
    pub version: String,
    /// Where it serves HTTP.
    pub address: Option<String>,
    /// Of the configuration that all hosts should share. `None`: the host has another version, which may make another digest of the same
    /// configuration.
    pub config: Option<Digest>,
    /// `None`: the host has not said it yet, or its version does not say it.
    pub plugins: Option<LivePlugins>,
    pub since: Timestamp,
    /// When it last renewed its lease.
    pub renewed: Timestamp,
    pub running_calls: u64,
    /// Whether it takes no new calls.
    pub is_draining: bool,
}

/// The plugins that are live at a host, each with the digest of its component. For an upstream MCP server, it is the digest of what the
/// operator has accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LivePlugins(pub BTreeMap<PluginName, Digest>);

impl LivePlugins {
    /// The names of the plugins that only one of two hosts has, or of which they have different components.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<PluginName> {
        let (own, others) = (&self.0, &other.0);
        let mut names: Vec<_> =
            own.keys().chain(others.keys()).filter(|name| own.get(*name) != others.get(*name)).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().cloned().collect()
    }
}

/// A part of the work that any host can do: each host does the work of other keys. Two hosts may have the same part for some seconds
/// after a host begins or ends, so doing work twice must be safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: u32,
    hosts: u32,
}

impl Share {
    /// The only host does everything.
    pub const ALL: Self = Self { index: 0, hosts: 1 };

    /// A host that takes no new work.
    pub const NONE: Self = Self { index: 1, hosts: 1 };

    /// The part of a host, by its place among all hosts.
    #[must_use]
    pub fn new(index: u32, hosts: u32) -> Self {
        Self { index, hosts: hosts.max(1) }
    }

    /// Whether this host does the work of a key.
    #[must_use]
    pub fn has(self, key: &Digest) -> bool {
        let [a, b, c, d, ..] = *key.as_bytes();
        u32::from_be_bytes([a, b, c, d]) % self.hosts == self.index
    }

    /// Whether this host does the work about a turn.
    #[must_use]
    pub fn has_turn(self, turn: TurnId) -> bool {
        self == Self::ALL || (self != Self::NONE && self.has(&Digest::of(turn.bits().to_be_bytes())))
    }

    /// Whether this host does the work that is not divided.
    #[must_use]
    pub const fn is_first(self) -> bool {
        self.index == 0
    }
}

/// News about other hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// They committed, in this order.
    Commits(Vec<PeerCommit>),
    /// They made more commits than are reported one by one.
    Missed,
    /// The run of a host has ended, and this host or another one has to recover its calls.
    Ended,
}

/// A commit of another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerCommit {
    Turn {
        turn: TurnId,
        /// The number of commits in its log before this one.
        number: u32,
        conversation: ConversationId,
        /// The caller of the turn, if the commit ends it.
        ended: Option<PrincipalId>,
    },
    /// A plugin was loaded, unloaded or refused.
    Plugin,
    /// The start of a host, a removal, or the revocation of a standing approval.
    Other,
}

impl PeerCommit {
    /// The turn of the commit.
    #[must_use]
    pub const fn turn(&self) -> Option<TurnId> {
        match self {
            Self::Turn { turn, .. } => Some(*turn),
            Self::Plugin | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_differ_by_name_or_component() {
        let live = |plugins: &[(&str, &str)]| {
            let plugins = plugins.iter();
            LivePlugins(plugins.map(|(name, bytes)| (PluginName::new(name).unwrap(), Digest::of(bytes))).collect())
        };
        let one = live(&[("a", "1"), ("b", "1"), ("c", "1")]);
        for (other, expected) in [
            (one.clone(), Vec::new()),
            (live(&[("a", "1"), ("b", "2"), ("d", "1")]), vec!["b", "c", "d"]),
            (LivePlugins::default(), vec!["a", "b", "c"]),
        ] {
            for names in [one.differing(&other), other.differing(&one)] {
                assert_eq!(names.iter().map(PluginName::as_str).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn each_turn_is_in_the_share_of_exactly_one_host() {
        for hosts in 1..5 {
            let shares: Vec<Share> = (0..hosts).map(|index| Share::new(index, hosts)).collect();
            let mut turns_of = vec![0; shares.len()];
            for number in 0..400 {
                let of: Vec<usize> =
                    (0..shares.len()).filter(|at| shares[*at].has_turn(TurnId::from_bits(number))).collect();
                assert_eq!(of.len(), 1);
                turns_of[of[0]] += 1;
            }
            assert!(turns_of.iter().all(|turns| *turns > 50), "{turns_of:?}");
        }
        assert!(Share::ALL.is_first() && Share::ALL.has_turn(TurnId::from_bits(7)));
        assert!(
            !Share::NONE.is_first()
                && !Share::NONE.has_turn(TurnId::from_bits(7))
                && !Share::NONE.has(&Digest::of("x"))
        );
    }
}
