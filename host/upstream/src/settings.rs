//! The operator's decisions about upstream servers, and what this crate needs from the host.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use dispatch::ports::{Clock, KnownTool};
use domain::{
    Digest, PluginName, Span,
    tool::{Approval, Recovery},
};

use url::Url;

use crate::{Declaration, Target};

/// Removes the values of secrets from a text.
pub type Redact = Arc<dyn Fn(String) -> String + Send + Sync>;

/// Makes a tool from an accepted declaration, or says which rules the declaration breaks.
pub type MakeTool = Arc<dyn Fn(&Offer<'_>) -> Result<KnownTool, Vec<String>> + Send + Sync>;

/// One upstream server.
#[derive(Clone)]
pub struct UpstreamSettings {
    /// The plugin of its tools: [`PluginName::of_upstream`].
    pub plugin: PluginName,
    pub place: Place,
    /// The same for people and for the file of acceptances.
    pub target: Target,
    /// The approval of its tools, and of single ones by the server's own names.
    pub approval: Approval,
    pub approvals: BTreeMap<String, Approval>,
    /// Whether the operator says that a call of its tools can be repeated, and of single ones by the server's own names.
    pub is_idempotent: bool,
    pub idempotent: BTreeMap<String, bool>,
    pub bounds: Bounds,
    pub redact: Redact,
}

/// Where a server is.
#[derive(Clone)]
pub enum Place {
    Program(Program),
    Url(Endpoint),
}

/// The URL of a server that speaks MCP over HTTP.
#[derive(Clone)]
pub struct Endpoint {
    /// `https`, or `http` to this machine.
    pub url: Url,
    pub token: Option<Token>,
}

/// The token that the server gets, and no other server.
#[derive(Clone)]
pub struct Token {
    pub value: String,
    /// The operator's name for its source, such as `the file github.token`.
    pub source: String,
}

/// The program of an upstream server.
#[derive(Clone)]
pub struct Program {
    /// The program and its arguments. Never empty.
    pub command: Vec<OsString>,
    /// All of its environment.
    pub environment: BTreeMap<String, OsString>,
    pub folder: PathBuf,
    /// A program that runs the command and kills it if this host ends: see [`crate::supervise`]. Its arguments come first.
    pub supervisor: Option<Vec<OsString>>,
}

/// The bounds on one upstream server. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The size of a message.
    pub message: usize,
    /// The size of the result of a call.
    pub result: usize,
    /// The number of tools, and the size of all their declarations.
    pub tools: usize,
    pub declarations: usize,
    /// The time until a server has started and listed its tools.
    pub start: Span,
    /// The number of calls that run at once, and how many more can wait.
    pub concurrency: usize,
    pub queue: usize,
    /// How long a call waits for a permit.
    pub wait: Span,
}

impl UpstreamSettings {
    /// The name in the configuration.
    pub(crate) fn name(&self) -> &str {
        self.plugin.upstream().unwrap_or(self.plugin.as_str())
    }

    /// The name of a tool in the catalog.
    pub(crate) fn tool_name(&self, tool: &str) -> String {
        format!("{}__{tool}", self.name())
    }

    /// The digest that calls are pinned to instead of a component: of the program and its settings, without the values of secrets.
    pub(crate) fn identity(&self) -> Digest {
        let mut parts: Vec<&[u8]> = vec![b"upstream", self.plugin.as_str().as_bytes()];
        match &self.place {
            Place::Program(Program { command, environment, folder, .. }) => {
                parts.extend(command.iter().map(|word| word.as_encoded_bytes()));
                parts.push(b"environment");
                parts.extend(environment.keys().map(|name| name.as_bytes()));
                parts.extend([b"folder".as_slice(), folder.as_os_str().as_encoded_bytes()]);
            }
            Place::Url(endpoint) => parts.extend([b"url".as_slice(), endpoint.url.as_str().as_bytes()]),
        }
        // Calls that waited before values counted continue if there is no value.
        for (name, value) in &self.target.environment {
            parts.extend([b"value".as_slice(), name.as_bytes(), value.as_bytes()]);
        }
        Digest::of_parts(&parts)
    }

    /// The tools that have a table of their own.
    pub(crate) fn named(&self) -> impl Iterator<Item = &String> {
        self.approvals.keys().chain(self.idempotent.keys())
    }

    pub(crate) fn approval_of(&self, tool: &str) -> Approval {
        self.approvals.get(tool).copied().unwrap_or(self.approval)
    }

    /// A call that a kill interrupted is repeated only if both the server and the operator say that it may be.
    pub(crate) fn recovery_of(&self, tool: &Declaration) -> Recovery {
        let by_operator = self.idempotent.get(tool.name()).copied().unwrap_or(self.is_idempotent);
        if by_operator && tool.annotations().idempotent == Some(true) { Recovery::Retry } else { Recovery::Fail }
    }
}

/// The parts of the host that this crate needs.
#[derive(Clone)]
pub struct Parts {
    pub clock: Arc<dyn Clock>,
    pub make: MakeTool,
    /// The threads for pipes and processes.
    pub runtime: tokio::runtime::Handle,
}

/// An accepted declaration that may become a tool.
pub struct Offer<'a> {
    pub plugin: &'a PluginName,
    /// Where the server is, if it is not a program.
    pub origin: Option<String>,
    pub identity: Digest,
    /// The name in the catalog.
    pub name: String,
    pub declaration: &'a Declaration,
    pub approval: Approval,
    pub recovery: Recovery,
}
