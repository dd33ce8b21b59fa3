//! All upstreams, as the rest of the host sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dispatch::ports::{End, KnownTool, Permit, Run};
use domain::{
    Digest, Outcome, PluginName, Receipt,
    call::Pinned,
    outcome::{Failure, FailureCode},
};

use crate::catalog::Problem;
use crate::diff::Review;
use crate::pins::Pins;
use crate::server::Server;
use crate::settings::{Parts, UpstreamSettings};

/// How often the file of acceptances is looked at. A call looks at it too.
const WATCH: Duration = Duration::from_secs(1);

/// The upstream servers of a host. Cheap to clone.
#[derive(Clone, Default)]
pub struct Upstreams {
    servers: Arc<BTreeMap<PluginName, Arc<Server>>>,
}

/// An upstream as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamStatus {
    pub plugin: PluginName,
    /// Where the server is, if it is not a program of this machine: the origin of its URL.
    pub origin: Option<String>,
    /// The digest that its calls are pinned to instead of a component.
    pub identity: Digest,
    /// The names of the tools that are offered.
    pub tools: Vec<String>,
    /// The tools that are not, with the reason.
    pub problems: BTreeMap<String, Problem>,
    /// Whether an acceptance, if there is one, covers the server's table. Those of earlier versions of this program do not.
    pub covers_server: bool,
    /// Why the server could not be used when it was last needed.
    pub fault: Option<String>,
}

impl Upstreams {
    /// No server is started yet.
    #[must_use]
    pub fn new(settings: Vec<UpstreamSettings>, pins: Pins, parts: &Parts) -> Self {
        let pins = Arc::new(pins);
        let server = |settings: UpstreamSettings| {
            (settings.plugin.clone(), Arc::new(Server::new(settings, parts.clone(), pins.clone())))
        };
        Self { servers: Arc::new(settings.into_iter().map(server).collect()) }
    }

    /// Starts every server and compares its tools with the accepted ones. A server that cannot be started is logged.
    pub async fn start(&self) {
        if let Some(server) = self.servers.values().next() {
            drop(server.runtime().spawn(watch(Arc::downgrade(&self.servers))));
        }
        let mut starting = tokio::task::JoinSet::new();
        for server in self.servers.values().cloned() {
            starting.spawn(async move {
                let plugin = &server.settings.plugin;
                match server.settings.target.origin() {
                    None => tracing::warn!(
                        upstream = %plugin,
                        "this MCP server runs outside the sandbox, with the rights of the host"
                    ),
                    Some(origin) => {
                        tracing::warn!(upstream = %plugin, %origin, "this MCP server runs outside the sandbox, elsewhere");
                    }
                }
                if !server.covers_server() {
                    let name = plugin.upstream().unwrap_or_default();
                    tracing::warn!(
                        upstream = %plugin,
                        "an earlier version of toolgate wrote its acceptance, which does not cover its command; run `toolgate \
                         upstream review {name}`"
                    );
                }
                let _ = server.usable().await;
            });
        }
        starting.join_all().await;
    }

    /// Whether there are no upstreams.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The offered tools, sorted by name.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<KnownTool>> {
        let of = |server: &Arc<Server>| -> Vec<_> {
            server.catalog().tools.values().map(|offered| offered.known.clone()).collect()
        };
        let mut all: Vec<_> = self.servers.values().flat_map(of).collect();
        all.sort_unstable_by(|a, b| a.tool.name.cmp(&b.tool.name));
        all
    }

    /// The offered tool with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<KnownTool>> {
        Some(self.of_tool(name)?.catalog().tools.get(name)?.known.clone())
    }

    /// Why calls of a tool are refused, if an upstream has one of this name that is not offered.
    #[must_use]
    pub fn refusal(&self, name: &str) -> Option<Outcome> {
        let server = self.of_tool(name)?;
        let catalog = server.catalog();
        let refusal = server.refusal(name, catalog.problems.get(name)?);
        Some(Outcome::Failed(Failure::new(FailureCode::ToolUnavailable, refusal)))
    }

    /// The upstream whose tools have names like this.
    fn of_tool(&self, name: &str) -> Option<&Arc<Server>> {
        let (upstream, _) = name.split_once("__")?;
        self.servers.get(&PluginName::of_upstream(upstream).ok()?)
    }

    /// The tool that a call is pinned to. `None` if the program or its settings have changed, or the tool is not offered.
    #[must_use]
    pub fn pinned(&self, plugin: &PluginName, identity: Digest, name: &str) -> Option<Arc<KnownTool>> {
        let server = self.servers.get(plugin).filter(|server| server.identity == identity)?;
        Some(server.catalog().tools.get(name)?.known.clone())
    }

    fn server(&self, pinned: &Pinned) -> Result<&Arc<Server>, Outcome> {
        let server = self.servers.get(&pinned.plugin).filter(|server| server.identity == pinned.component);
        server.ok_or(Outcome::Invalidated)
    }

    /// Why a call cannot go on whose tool [`Upstreams::pinned`] did not find.
    #[must_use]
    pub fn lost(&self, pinned: &Pinned) -> Outcome {
        match self.server(pinned) {
            Err(outcome) => outcome,
            Ok(server) => {
                let name = server.settings.plugin.upstream().unwrap_or_default();
                let message = format!(
                    "the operator has not accepted what the MCP server {name} declares now, so nothing was carried out. The \
                     operator can review it with `toolgate upstream review {name}`"
                );
                Outcome::Failed(Failure::new(FailureCode::ToolUnavailable, message))
            }
        }
    }

    /// Allows a call.
    ///
    /// # Errors
    /// The outcome of a call that cannot run.
    pub async fn permit(&self, pinned: &Pinned) -> Result<Permit, Outcome> {
        Ok(Box::new(self.server(pinned)?.permit().await?))
    }

    /// Makes a call. Dropping the future tells the server that the call is cancelled.
    pub async fn run(&self, run: Run) -> End {
        let server = match self.server(&run.pinned) {
            Ok(server) => server,
            Err(outcome) => return End::unrun(outcome.into()),
        };
        let begun = server.now();
        let outcome = server.call(&run).await;
        let micros = server.since(begun).millis().saturating_mul(1_000);
        let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        let receipt = Receipt {
            micros,
            peak_memory: 0,
            peak_host_bytes: 0,
            host_calls: 0,
            bytes_in: size(outcome.size()),
            bytes_out: size(run.arguments.size()),
            journal: None,
        };
        End { ended: outcome.into(), wrote: false, receipt: Some(receipt) }
    }

    /// Every upstream, sorted by name.
    #[must_use]
    pub fn status(&self) -> Vec<UpstreamStatus> {
        let status = |server: &Arc<Server>| {
            let catalog = server.catalog();
            UpstreamStatus {
                plugin: server.settings.plugin.clone(),
                origin: server.settings.target.origin(),
                identity: server.identity,
                tools: catalog.tools.keys().cloned().collect(),
                problems: catalog.problems.clone(),
                covers_server: server.covers_server(),
                fault: server.fault(),
            }
        };
        self.servers.values().map(status).collect()
    }

    /// The digests of what the operator has accepted of each upstream.
    pub fn accepted(&self) -> impl Iterator<Item = (PluginName, Digest)> {
        self.servers.iter().map(|(plugin, server)| (plugin.clone(), server.accepted()))
    }

    /// Asks an upstream over a connection of its own, and compares its tools with the accepted ones. `None`: there is no such
    /// upstream.
    ///
    /// # Errors
    /// Why the server cannot be asked. The text continues a sentence about the server.
    pub async fn review(&self, plugin: &PluginName) -> Option<Result<Review, String>> {
        Some(self.servers.get(plugin)?.review().await)
    }
}

/// Learns what the operator accepts, so that the lists of tools show it, until the upstreams are dropped.
async fn watch(servers: Weak<BTreeMap<PluginName, Arc<Server>>>) {
    let mut seconds = tokio::time::interval(WATCH);
    seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let Some(servers) = servers.upgrade() else { return };
        let refreshed = tokio::task::spawn_blocking(move || {
            for server in servers.values() {
                if server.refresh() {
                    server.ask_again();
                }
            }
        });
        let _ = refreshed.await;
    }
}
