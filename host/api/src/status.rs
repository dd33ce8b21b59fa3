//! The state of the host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of the host.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostStatus {
    /// The version of the host.
    pub version: String,
    /// Whether it can store changes.
    pub store: StoreState,
    /// The numbers of plugins by their state.
    pub plugin_counts: PluginCounts,
    /// The names of plugins by their state.
    pub plugins: PluginNames,
    /// The address that it listens on. For admins.
    pub address: Option<String>,
    /// How components are compiled. For admins.
    pub compiler: Option<CompilerStatus>,
    /// The public key that verifies the host's signed checkpoints of the audit. Store it elsewhere. For admins, and absent if
    /// the host keeps its turns in memory only.
    pub audit_key: Option<String>,
}

/// Whether the host can store changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoreState {
    /// It can.
    Ok,
    /// The disk has so little free space that the host takes no new turns. Everything else goes on.
    DiskLow,
    /// It can. The host found damaged records, or damaged pages of its database. Reads that need them fail, and everything
    /// else goes on.
    DamagedRecords,
    /// The disk is full. The host takes changes again when there is space.
    Full,
    /// The disk failed. The host takes changes again after a restart.
    Failed,
}

/// The state of a host that is healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// Nothing needs attention.
    Ok,
    /// The disk has so little free space that the host takes no new turns. Everything else goes on.
    DiskLow,
    /// The host found damaged records and set them aside. Everything else goes on.
    DamagedRecords,
}

/// The numbers of plugins by their state. A live plugin whose newest component was rejected counts as both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginCounts {
    /// Their tools are live.
    pub live: usize,
    /// A component is being examined and compiled, or waits for it.
    pub loading: usize,
    /// Their newest component was rejected.
    pub rejected: usize,
}

/// The names of plugins by their state, sorted.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginNames {
    /// Those that are live. Lists of tools name them too.
    pub live: Vec<String>,
    /// Those that are loading. For admins.
    pub loading: Option<Vec<String>>,
    /// Those whose newest component was rejected. For admins; `GET /v1/plugins` has the findings.
    pub rejected: Option<Vec<String>>,
}

/// How components are compiled. A compiler reads components of strangers, and the operating system confines it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompilerStatus {
    /// Whether each component is compiled in a process of its own, with limits on its time and memory.
    pub own_process: bool,
    /// How much Landlock denies to this process. Absent without such a process, and if the host could not start one.
    pub landlock: Option<LandlockState>,
    /// Whether seccomp denies the system calls that compiling does not need. Absent as above.
    pub seccomp: Option<bool>,
}

/// How much Landlock denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LandlockState {
    /// Files, TCP connections, signals and abstract sockets of others.
    Full,
    /// Only some of it, because the kernel is older than Linux 6.12.
    InPart,
    /// Nothing: the kernel does not have it.
    Missing,
}
