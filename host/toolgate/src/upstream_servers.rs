//! The upstream MCP servers of a host, with the feature `upstream`. Without it, nothing.

use std::sync::Arc;

use dispatch::ports::{Clock, Tools};
use domain::{Digest, PluginName};
use registry::{Registry, RegistrySettings};

#[cfg(feature = "upstream")]
use crate::compiler::CompilerProgram;
use crate::config::Config;
use crate::error::OpenError;

/// The choice of the program that opens a host.
#[derive(Debug, Default)]
pub(crate) struct UpstreamPlan {
    /// Whether upstream servers are started, and the program that ends them with this process.
    #[cfg(feature = "upstream")]
    pub(crate) supervisor: Option<Option<CompilerProgram>>,
}

/// The upstream servers of a host. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct UpstreamServers {
    #[cfg(feature = "upstream")]
    pub(crate) upstreams: upstream::Upstreams,
}

#[cfg(feature = "upstream")]
impl UpstreamServers {
    /// The servers of the plan. None is started yet.
    pub(crate) fn open(
        config: &Config,
        plan: UpstreamPlan,
        settings: &RegistrySettings,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let Some(supervisor) = plan.supervisor else { return Ok(Self::default()) };
        let upstreams = crate::upstreams::open(config, settings, supervisor, clock.clone())?;
        Ok(Self { upstreams })
    }

    /// The lines about the servers in the record of a start.
    pub(crate) fn recorded(&self) -> Vec<String> {
        self.upstreams.status().iter().map(crate::upstreams::recorded).collect()
    }

    /// The digests of what the operator has accepted of each server.
    pub(crate) fn accepted(&self) -> Vec<(PluginName, Digest)> {
        self.upstreams.accepted().collect()
    }

    /// Starts the servers. Returns the tools of the plugins and of the servers.
    pub(crate) fn start(&self, plugins: &Registry) -> Arc<dyn Tools> {
        if self.upstreams.is_empty() {
            return Arc::new(plugins.clone());
        }
        let starting = self.upstreams.clone();
        tokio::spawn(async move { starting.start().await });
        Arc::new(crate::upstreams::AllTools { registry: plugins.clone(), upstreams: self.upstreams.clone() })
    }
}

#[cfg(not(feature = "upstream"))]
impl UpstreamServers {
    #[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
    pub(crate) fn open(
        _: &Config,
        _: UpstreamPlan,
        _: &RegistrySettings,
        _: &Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        Ok(Self::default())
    }

    pub(crate) fn recorded(&self) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn accepted(&self) -> Vec<(PluginName, Digest)> {
        Vec::new()
    }

    pub(crate) fn start(&self, plugins: &Registry) -> Arc<dyn Tools> {
        Arc::new(plugins.clone())
    }
}
