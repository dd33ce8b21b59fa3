//! The state of the host, for operators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of the host.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostStatus {
    /// The version of the host.
    pub version: String,
    /// The address that it listens on.
    pub address: String,
    /// Whether it can store changes.
    pub store: StoreState,
    /// The plugins by their state.
    pub plugins: PluginNames,
    /// How components are compiled.
    pub compiler: CompilerStatus,
    /// The public key that verifies the host's signed checkpoints of the audit. Store it elsewhere. Absent if the host keeps
    /// its turns in memory only.
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

/// The names of the plugins, sorted. A live plugin whose newest component was rejected is in both lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginNames {
    /// Their tools are live.
    pub live: Vec<String>,
    /// A component is being examined and compiled, or waits for it.
    pub loading: Vec<String>,
    /// Their newest component was rejected.
    pub rejected: Vec<String>,
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
