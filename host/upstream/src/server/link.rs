//! The connection of one upstream: it is made when it is needed, and again after a failure and a pause.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::{Span, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Server, time};
use crate::catalog::Listed;
use crate::connection::Connection;
use crate::declaration::Declaration;
use crate::message::{Answer, NoAnswer};

/// The revisions of the protocol that this host speaks to a server. The first is what it asks for.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The time for an answer that needs no work.
const PING: Span = Span::from_secs(5);

/// The pause after the first failure in a row. It doubles with each further one.
const PAUSE: Span = Span::from_secs(1);
const MAX_PAUSE: Span = Span::from_secs(60);

/// The pages of one list of tools.
const MAX_PAGES: usize = 64;

/// Lists the tools again before a call if the last list is older.
const LISTED_FOR: Span = Span::from_secs(300);

/// The connection, and the failures since the last answer to a call.
#[derive(Default)]
pub(super) struct State {
    connection: Option<Arc<Connection>>,
    listed_at: Option<Timestamp>,
    pub(super) failures: u32,
    not_before: Option<Timestamp>,
    last: String,
}

impl Server {
    /// A connection whose tools are known, on the threads of the host, because those of guests have no I/O. A start goes on if its
    /// caller gives up, so that it ends with the process or with a pause.
    ///
    /// # Errors
    /// Why it is missing. The text continues a sentence about the server.
    pub(crate) async fn usable(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let (server, runtime) = (self.clone(), self.parts.runtime.clone());
        let connected = self.parts.runtime.spawn(async move {
            let refreshing = server.clone();
            // A call sees what the operator accepts now.
            let _ = runtime.spawn_blocking(move || refreshing.refresh()).await;
            server.connected().await
        });
        connected.await.unwrap_or_else(|error| Err(format!("could not be asked: {error}")))
    }

    async fn connected(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let mut state = self.state.lock().await;
        let has_lost_session = |connection: &Arc<Connection>| connection.has_lost_session();
        if self.is_stale.swap(false, Ordering::AcqRel) || state.connection.as_ref().is_some_and(has_lost_session) {
            // Calls that run keep theirs until they end.
            state.connection = None;
        }
        if let Some(connection) = state.connection.clone() {
            match self.in_time(self.still_usable(&mut state, &connection)).await {
                Ok(()) => return Ok(connection),
                // A new session begins below. Calls that run keep theirs until they end.
                Err(_) if connection.has_lost_session() => state.connection = None,
                // Its calls that run are not affected. The next call asks again.
                Err(why) if connection.is_at_url() && connection.ended().is_none() => return Err(why),
                Err(why) => self.failed(&mut state, why),
            }
        }
        self.pause.check()?;
        if state.not_before.is_some_and(|not_before| self.now() < not_before) {
            return Err(format!("{}; it is started again after a pause", state.last));
        }
        match self.in_time(self.start(&mut state)).await {
            Ok(connection) => {
                self.tools.set_fault(None);
                Ok(connection)
            }
            Err(why) => {
                self.failed(&mut state, why.clone());
                Err(why)
            }
        }
    }

    /// All steps of a start, or of a list, share one deadline.
    async fn in_time<T>(&self, steps: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let late = || "has not listed its tools in time".to_owned();
        tokio::time::timeout(time(self.settings.bounds.start), steps).await.unwrap_or_else(|_| Err(late()))
    }

    /// Ends the connection and records the failure. The next start is after a pause.
    fn failed(&self, state: &mut State, why: String) {
        let why = (self.settings.redact)(why);
        tracing::warn!(upstream = %self.settings.plugin, "the server {}", escape::excerpt(&why, 1_000));
        let pause = PAUSE.millis().saturating_mul(1 << state.failures.min(10)).min(MAX_PAUSE.millis());
        if let Some(connection) = state.connection.take() {
            // Calls that run on it do not keep a broken server.
            connection.kill(&why);
        }
        state.failures += 1;
        state.not_before = Some(self.now() + Span::from_millis(pause));
        state.last.clone_from(&why);
        self.tools.set_fault(Some(why));
    }

    async fn still_usable(self: &Arc<Self>, state: &mut State, connection: &Connection) -> Result<(), String> {
        if let Some(why) = connection.ended() {
            return Err(why);
        }
        if connection.is_silent() && connection.request("ping", "{}", PING).await.is_err() {
            return Err("does not answer".to_owned());
        }
        if connection.take_changed() {
            // Also if the list below fails.
            state.listed_at = None;
        }
        if state.listed_at.is_none_or(|at| self.since(at) > LISTED_FOR) {
            let listed = self.listed(connection).await?;
            self.publish(listed).await?;
            state.listed_at = Some(self.now());
        }
        Ok(())
    }

    async fn start(self: &Arc<Self>, state: &mut State) -> Result<Arc<Connection>, String> {
        let (connection, listed) = self.open().await?;
        self.publish(listed).await?;
        state.listed_at = Some(self.now());
        let connection = Arc::new(connection);
        state.connection = Some(connection.clone());
        Ok(connection)
    }

    /// A new connection, with the tools that the server declares.
    async fn open(&self) -> Result<(Connection, Listed), String> {
        let connection = Connection::start(&self.settings, &self.parts, &self.pause)?;
        let version = env!("CARGO_PKG_VERSION");
        let params = format!(
            r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"toolgate","version":"{version}"}}}}"#,
            REVISIONS[0]
        );
        let answer = self.ask(&connection, "initialize", &params).await?;
        #[derive(Deserialize)]
        struct Initialized {
            #[serde(rename = "protocolVersion")]
            version: String,
        }
        let Initialized { version } = serde_json::from_str(&answer).map_err(|error| malformed(&error))?;
        if !REVISIONS.contains(&version.as_str()) {
            let version = escape::quoted(&version, 40);
            return Err(format!("speaks the revision {version}; this host speaks {}", REVISIONS.join(", ")));
        }
        connection.initialized(&version).await?;
        let listed = self.listed(&connection).await?;
        Ok((connection, listed))
    }

    async fn listed(&self, connection: &Connection) -> Result<Listed, String> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
            #[serde(rename = "nextCursor", default)]
            next: Option<String>,
        }
        let bounds = self.settings.bounds;
        let (mut listed, mut size, mut params) = (Listed::new(), 0, "{}".to_owned());
        for _ in 0..MAX_PAGES {
            let text = self.ask(connection, "tools/list", &params).await?;
            let page: Page<'_> = serde_json::from_str(&text).map_err(|error| malformed(&error))?;
            for tool in page.tools {
                size += tool.get().len();
                if listed.len() == bounds.tools {
                    return Err(format!("declares more than {} tools (limit `catalog.tools`)", bounds.tools));
                }
                if size > bounds.declarations {
                    let max = bounds.declarations;
                    return Err(format!("declares tools of more than {max} bytes (limit `catalog.declaration_bytes`)"));
                }
                let tool = Declaration::read(tool.get()).map_err(|error| malformed(&error))?;
                let name = tool.name().to_owned();
                if listed.insert(name.clone(), tool).is_some() {
                    return Err(format!("declares two tools with the name {}", escape::quoted(&name, 80)));
                }
            }
            match page.next {
                Some(next) => params = format!(r#"{{"cursor":{}}}"#, domain::json::quote(&next)),
                None => return Ok(listed),
            }
        }
        Err(format!("lists its tools on more than {MAX_PAGES} pages"))
    }

    /// The tools that the server declares now, over a connection of their own.
    pub(crate) async fn declared(&self) -> Result<Listed, String> {
        let (_connection, listed) = self.in_time(self.open()).await?;
        Ok(listed)
    }

    /// The result of a request that needs no work, without secrets.
    async fn ask(&self, connection: &Connection, method: &str, params: &str) -> Result<String, String> {
        match connection.request(method, params, self.settings.bounds.start).await {
            Ok(Answer::Result(text)) => Ok((self.settings.redact)(text)),
            Ok(Answer::Error { code, message }) => {
                let message = (self.settings.redact)(message);
                Err(format!("refuses `{method}`: {} (error {code})", escape::excerpt(&message, 200)))
            }
            Err(NoAnswer::NotSent(why) | NoAnswer::Unknown(why)) => Err(why),
            Err(NoAnswer::SessionEnded) => Err("ended a session that it had just begun".to_owned()),
            Err(NoAnswer::OutOfTime) => Err(format!("does not answer `{method}`")),
        }
    }
}

fn malformed(error: &dyn std::fmt::Display) -> String {
    format!("sent a malformed answer: {}", escape::excerpt(&error.to_string(), 200))
}
