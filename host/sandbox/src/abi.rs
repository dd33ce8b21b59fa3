//! The versions of the interface that plugins are built against. The names of its exports tell a plugin's version before it
//! is compiled. All other modules know only the newest form.

pub(crate) mod package;
pub(crate) mod policy;
pub(crate) mod v0_1;

use std::fmt;

use domain::{
    outcome::Failure,
    tool::{Approval, Executor},
};
use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Result, Store};

use self::package::Package;
use crate::guest::Guest;
use crate::job::Job;

/// A version of the interface that this host supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AbiVersion {
    /// `toolgate:plugin@0.1.x`.
    V0_1,
}

impl AbiVersion {
    /// The version of an export such as `toolgate:plugin/catalog@0.1.3`. Within 0.x the second number counts, as in
    /// semantic versioning.
    pub(crate) fn of(version: &str) -> Option<Self> {
        PLUGIN.speaks(version).then_some(Self::V0_1)
    }
}

/// The interface that plugins import.
pub(crate) static PLUGIN: Package = Package {
    name: "toolgate:plugin",
    spoken: "0.1",
    newest: "0.1.2",
    interfaces: &[
        ("host", &["progress", "log", STOP_REQUESTED]),
        ("tool-types", &[]),
        (DURABLE, &["ask", "approve", "await-external", "call-tools", "sleep"]),
    ],
};

/// The interface for waits in the middle of a call.
pub(crate) const DURABLE: &str = "durable";

/// The function that tells a call that it should stop.
pub(crate) const STOP_REQUESTED: &str = "stop-requested";

impl fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0_1 => "0.1",
        })
    }
}

/// A tool as a plugin declares it. No rule has been applied to it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// A JSON Schema, as text.
    pub parameters: String,
    pub executor: Executor,
    pub approval: Approval,
    pub streaming: bool,
    /// A JSON object, as text.
    pub options: String,
}

/// The exports of a plugin, found once when it is loaded.
pub(crate) enum Exports {
    V0_1(v0_1::Indices),
}

impl Exports {
    pub(crate) fn find(version: AbiVersion, has_server: bool, pre: &InstancePre<Guest>) -> Result<Self> {
        match version {
            AbiVersion::V0_1 => v0_1::Indices::find(has_server, pre).map(Self::V0_1),
        }
    }

    /// Makes an instance and asks it for its tools.
    pub(crate) async fn tools(&self, pre: &InstancePre<Guest>, store: &mut Store<Guest>) -> Result<Vec<Declared>> {
        match self {
            Self::V0_1(indices) => indices.tools(pre, store).await,
        }
    }

    /// Makes an instance that carries out the job.
    pub(crate) async fn run(
        &self,
        pre: &InstancePre<Guest>,
        store: &mut Store<Guest>,
        job: &Job,
    ) -> Result<std::result::Result<String, Failure>> {
        match self {
            Self::V0_1(indices) => indices.run(pre, store, job).await,
        }
    }
}

/// Links the interfaces that plugins import, in every version.
pub(crate) fn link(linker: &mut Linker<Guest>) -> Result<()> {
    v0_1::link(linker)
}
