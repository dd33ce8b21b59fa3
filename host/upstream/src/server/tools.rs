//! The catalog of one upstream. It is made outside of every lock that a call takes, and only if what it is made from has changed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::Digest;

use super::Server;
use crate::Problem;
use crate::catalog::{Catalog, Listed};
use crate::pins::Accepted;

/// The tools that a log line names. It counts the others.
const MAX_LOGGED: usize = 5;

/// The catalog, and what it is made from.
pub(super) struct Tools {
    known: Mutex<Known>,
    /// Held while a catalog is made, so that an older one never follows a newer one. No call waits for it.
    making: Mutex<()>,
}

pub(super) struct Known {
    pub(super) accepted: Arc<Accepted>,
    listed: Option<(Digest, Arc<Listed>)>,
    catalog: Arc<Catalog>,
    /// Why the server is not usable, if it is not.
    fault: Option<String>,
}

impl Tools {
    pub(super) fn new(accepted: Arc<Accepted>, catalog: Catalog) -> Self {
        let known = Known { accepted, listed: None, catalog: Arc::new(catalog), fault: None };
        Self { known: Mutex::new(known), making: Mutex::new(()) }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_fault(&self, fault: Option<String>) {
        self.known().fault = fault;
    }
}

impl Server {
    /// The tools now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.tools.known().catalog.clone()
    }

    /// Why the server cannot be used, if it could not be when it was last asked.
    pub(crate) fn fault(&self) -> Option<String> {
        self.tools.known().fault.clone()
    }

    /// Whether an acceptance, if there is one, covers the server's table. Those of earlier versions of this program do not.
    pub(crate) fn covers_server(&self) -> bool {
        let known = self.tools.known();
        known.accepted.of(self.settings.name()).is_none_or(|accepted| accepted.target.is_some())
    }

    /// Learns what the operator accepts now. Returns whether that has changed for this server. Blocks.
    pub(crate) fn refresh(&self) -> bool {
        self.pins.refresh();
        let name = self.settings.name();
        let has_changed = {
            let mut known = self.tools.known();
            // Read under the lock, so that an older acceptance never follows a newer one.
            let accepted = self.pins.current();
            let has_changed = known.accepted.of(name) != accepted.of(name);
            known.accepted = accepted;
            has_changed
        };
        if has_changed {
            // The operator has seen what the program declares now, and maybe another version of it runs.
            self.is_stale.store(true, Ordering::Release);
            self.renew();
        }
        has_changed
    }

    /// Publishes what the server declares now.
    pub(super) async fn publish(self: &Arc<Self>, listed: Listed) -> Result<(), String> {
        let digests: Vec<_> = listed.values().map(|tool| *tool.digest().as_bytes()).collect();
        let digest = Digest::of_parts(&digests.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>());
        {
            let mut known = self.tools.known();
            if known.listed.as_ref().is_some_and(|(before, _)| *before == digest) {
                return Ok(());
            }
            known.listed = Some((digest, Arc::new(listed)));
        }
        let server = self.clone();
        let renewed = tokio::task::spawn_blocking(move || server.renew()).await;
        renewed.map_err(|_| "declares tools that the host failed to read".to_owned())
    }

    /// Makes the catalog again. Blocks.
    fn renew(&self) {
        let _making = self.tools.making.lock().unwrap_or_else(PoisonError::into_inner);
        let (accepted, listed, before) = {
            let known = self.tools.known();
            (known.accepted.clone(), known.listed.clone(), known.catalog.clone())
        };
        let (accepted, listed) = (accepted.of(self.settings.name()), listed.as_ref().map(|(_, listed)| &**listed));
        let catalog = Catalog::new(&self.settings, self.identity, accepted, listed, &self.parts.make, &before);
        if catalog.problems != before.problems {
            self.report(&catalog);
        }
        self.tools.known().catalog = Arc::new(catalog);
    }

    /// One line about all tools that are not offered.
    fn report(&self, catalog: &Catalog) {
        let (upstream, name, count) = (&self.settings.plugin, self.settings.name(), catalog.problems.len());
        if count == 0 {
            tracing::info!(%upstream, "all of its tools are offered");
            return;
        }
        let of = |(tool, problem): (&String, &Problem)| {
            format!("{}: {}", escape::excerpt(tool, 100), escape::excerpt(&problem.to_string(), 200))
        };
        let mut tools: Vec<_> = catalog.problems.iter().take(MAX_LOGGED).map(of).collect();
        if count > MAX_LOGGED {
            tools.push(format!("and {} more", count - MAX_LOGGED));
        }
        let tools = tools.join("; ");
        tracing::warn!(%upstream, "{count} of its tools are not offered, see `toolgate upstream review {name}`: {tools}");
    }

    /// Learns in the background whether the tools have changed, because a refused tool is never called.
    pub(crate) fn ask_again(self: &Arc<Self>) {
        let server = self.clone();
        // If it fails, the fault of the server says so.
        drop(self.parts.runtime.spawn(async move { server.usable().await.map(drop) }));
    }

    /// Why calls of a tool with this problem are refused, and what the operator can do.
    pub(crate) fn refusal(self: &Arc<Self>, tool: &str, problem: &Problem) -> String {
        self.ask_again();
        let name = self.settings.name();
        format!(
            "the tool {} is not offered: {problem}. Nothing was carried out. The operator can review it with `toolgate upstream \
             review {name}`",
            escape::excerpt(tool, 100)
        )
    }
}
