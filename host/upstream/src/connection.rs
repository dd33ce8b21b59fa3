//! One connection to a server: over a pipe to its process, or over HTTP. Both bound everything that the server sends.

use std::sync::Arc;

use domain::Span;

use crate::message::{Answer, NoAnswer};
use crate::pause::Pause;
use crate::pipe::Pipe;
use crate::remote::Remote;
use crate::settings::{Parts, Place, UpstreamSettings};

/// Ends with its process or its session when it is dropped.
pub(crate) enum Connection {
    Pipe(Pipe),
    Remote(Remote),
}

impl Connection {
    /// Starts a program, or prepares a connection to a URL. `pause` is for all connections to the server.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn start(settings: &UpstreamSettings, parts: &Parts, pause: &Arc<Pause>) -> Result<Self, String> {
        let max = settings.bounds.message;
        match &settings.place {
            Place::Program(program) => {
                let started = Pipe::start(program, max, &settings.plugin, &settings.redact, &parts.clock);
                Ok(Self::Pipe(started?))
            }
            Place::Url(endpoint) => Ok(Self::Remote(Remote::new(endpoint, max, parts, pause.clone())?)),
        }
    }

    /// The server has answered `initialize` with this revision.
    ///
    /// # Errors
    /// Why the server did not learn that this host is ready.
    pub(crate) async fn initialized(&self, revision: &str) -> Result<(), String> {
        match self {
            Self::Pipe(pipe) => {
                pipe.notify("notifications/initialized", "{}");
                Ok(())
            }
            Self::Remote(remote) => remote.initialized(revision).await,
        }
    }

    /// Why it has ended.
    pub(crate) fn ended(&self) -> Option<String> {
        match self {
            Self::Pipe(pipe) => pipe.ended(),
            Self::Remote(remote) => remote.ended(),
        }
    }

    /// Whether each request has a connection of its own, so that one can fail alone.
    pub(crate) const fn is_at_url(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Whether the server has only forgotten the session, which breaks no rule.
    pub(crate) fn has_lost_session(&self) -> bool {
        matches!(self, Self::Remote(remote) if remote.has_lost_session())
    }

    /// Ends it at once. Requests without an answer get this reason.
    pub(crate) fn kill(&self, why: &str) {
        match self {
            Self::Pipe(pipe) => pipe.kill(why),
            Self::Remote(remote) => remote.kill(why),
        }
    }

    /// Whether the server said since the last time that its tools have changed.
    pub(crate) fn take_changed(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.take_changed(),
            Self::Remote(remote) => remote.take_changed(),
        }
    }

    /// Whether a request to a process got no answer in time, and nothing came since then.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Pipe(pipe) if pipe.is_silent())
    }

    /// Sends a request and waits for its answer. If the future is dropped, the server gets a cancellation.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub(crate) async fn request(&self, method: &str, params: &str, at_most: Span) -> Result<Answer, NoAnswer> {
        match self {
            Self::Pipe(pipe) => pipe.request(method, params, at_most).await,
            Self::Remote(remote) => remote.request(method, params, at_most).await,
        }
    }
}
