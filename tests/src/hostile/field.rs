//! The field of an attack: a host with a neighbour on it, an attacker with a server, and the host's memory.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use anyhow::Result;
use serde_json::json;

use super::case::Case;
use super::neighbour::{self, Latency, Neighbour, Work};
use super::resident::Resident;
use super::server::Server;
use crate::guests::fixture;
use crate::host::{Host, Setup};
use crate::http::{Answer, Client};

/// The callers that attack.
pub(super) const CALLERS: [&str; 4] = ["mallory", "mallory-2", "mallory-3", "mallory-4"];

/// A host with a neighbour on it, and an attacker.
pub struct Field {
    host: RwLock<Host>,
    pub(super) neighbour: Neighbour,
    /// Callers that attack together. Most cases have only the first one.
    pub(super) attackers: [Client; 4],
    server: Server,
    /// The memory of the host and of those that follow it.
    memory: Mutex<Resident>,
    /// Connections that the attacker keeps open.
    held: Mutex<Vec<TcpStream>>,
    pub(super) quiet: Latency,
}

impl Field {
    /// Starts a host for these cases, which have the same settings.
    ///
    /// # Errors
    /// When the neighbour is not served even without an attack.
    pub fn new(cases: &[Case]) -> Result<Self> {
        let mut setup = Setup::default().component("calm", fixture(&json!([{"name": neighbour::TOOL}])));
        if let Some(first) = cases.first() {
            setup = setup.settings(&first.settings);
        }
        let server = Server::start()?;
        for case in cases.iter().filter(|case| !case.plugin.is_empty()) {
            let table = BTreeMap::from([("plugin", BTreeMap::from([(case.plugin_name(), &case.plugin)]))]);
            setup = setup.tables(&server.filled(&toml::to_string(&table)?));
        }
        setup = cases.iter().fold(setup, |setup, case| setup.tables(&case.tables));
        let mut host = setup.prepare();
        for folder in cases.iter().flat_map(Case::folders) {
            fs::create_dir(host.folder().join(folder))?;
        }
        for (path, content) in cases.iter().flat_map(|case| &case.files) {
            content.write(&host.folder().join(path))?;
        }
        host.start();
        let neighbour = Neighbour::new(host.token("neighbour", &["caller"], None));
        let attackers = CALLERS.map(|caller| host.token(caller, &["caller"], None));
        // The first calls pay for threads and connections.
        neighbour.call(5, Work::Submits)?;
        let memory = Mutex::new(Resident::watch(host.process())?);
        let (quiet, held) = (Latency::default(), Mutex::default());
        Ok(Self { host: RwLock::new(host), neighbour, attackers, server, memory, held, quiet })
    }

    /// The neighbour's calls without an attack.
    #[must_use]
    pub fn quiet(&self) -> &Latency {
        &self.quiet
    }

    /// The text with the address of the attacker's server.
    pub(super) fn filled(&self, text: &str) -> String {
        self.server.filled(text)
    }

    /// Keeps a connection open until the case has ended.
    pub(super) fn hold(&self, connection: TcpStream) {
        self.held().push(connection);
    }

    /// Closes the connections that are held.
    pub(super) fn release(&self) {
        self.held().clear();
    }

    fn held(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host.
    pub(super) fn host(&self) -> RwLockReadGuard<'_, Host> {
        self.host.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the host and starts it again, with these keys more.
    pub(super) fn restart(&self, settings: &str) -> Result<()> {
        let mut host = self.host.write().unwrap_or_else(PoisonError::into_inner);
        let mut memory = self.memory();
        memory.growth()?;
        host.restart_with(settings);
        memory.follow(host.process());
        Ok(())
    }

    /// Begins to measure the host's memory.
    pub(super) fn watch(&self) -> Result<()> {
        *self.memory() = Resident::watch(self.host().process())?;
        Ok(())
    }

    /// The growth of the host's memory since then, also if another process is the host now.
    pub(super) fn growth(&self) -> Result<u64> {
        self.memory().growth()
    }

    fn memory(&self) -> MutexGuard<'_, Resident> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn load(&self, case: &Case, component: &[u8]) -> Answer {
        self.host().admin.put(&format!("/v1/plugins/{}", case.plugin_name()), component)
    }
}
