//! What the server needs of the host: the handle of the loop, and the traits that it owns and the host's face implements.

use std::sync::Arc;

use api::{Explanation, FindingView, PluginView};
use async_trait::async_trait;
use axum::body::Bytes;
use dispatch::ports::Question;
use domain::{Digest, PluginName, Principal, PrincipalId, Span, Timestamp};

use crate::signed::{SessionMark, SigningKey};

/// Everything that the server reaches.
pub struct Doors {
    /// The loop.
    pub handle: dispatch::Handle,
    /// The plugins.
    pub plugins: Arc<dyn Plugins>,
    /// What the operator's rules and policies say.
    pub policy: Arc<dyn ExplainPolicy>,
    /// Who is who.
    pub auth: Arc<dyn Authenticate>,
    /// What sessions and links are made with.
    pub sessions: Sessions,
    /// The operator's choices.
    pub settings: Settings,
}

/// The plugins, for their operator.
#[async_trait]
pub trait Plugins: Send + Sync {
    /// Every plugin that is live or was refused, sorted by name.
    fn list(&self) -> Vec<PluginView>;

    /// Puts a component in the place of whatever is live under the name.
    ///
    /// # Errors
    /// [`PutError`]; what was live still is.
    async fn put(&self, name: PluginName, component: Bytes, by: PrincipalId) -> Result<PluginView, PutError>;

    /// Takes a plugin's tools away; calls that wait for them keep waiting. Returns whether there was such a plugin.
    ///
    /// # Errors
    /// [`PluginFault`]; what was live still is.
    async fn remove(&self, name: PluginName, by: PrincipalId) -> Result<bool, PluginFault>;
}

/// The operator's rules and policies, for whoever wants to know what they would say of a call.
#[async_trait]
pub trait ExplainPolicy: Send + Sync {
    /// What would become of a call. Its `invalid` is empty: schemas are looked at elsewhere.
    async fn explain(&self, question: Question) -> Explanation;
}

/// Why a plugin was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// It breaks rules: all of them are listed.
    #[error("the plugin was refused")]
    Refused(Vec<FindingView>),
    /// The host failed.
    #[error(transparent)]
    Fault(#[from] PluginFault),
}

/// The host failed to change a plugin. The text is for the log and never leaves the host.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PluginFault(pub String);

/// Who presents a token.
///
/// Implementations compare in constant time, or look up a digest of the token: how long an answer takes must not tell
/// how much of a guess was right. The server itself never compares tokens.
pub trait Authenticate: Send + Sync {
    /// The principal that the token stands for, if it stands for one.
    fn principal(&self, token: &str) -> Option<Principal>;

    /// The principal that a token with this SHA-256 stands for. A session names its token so, and counts as long as there is
    /// an answer.
    fn holder(&self, token: Digest) -> Option<Principal>;

    /// Who holds a token under this name, with the SHA-256 of the token.
    fn named(&self, name: &PrincipalId) -> Option<(Principal, Digest)>;
}

/// What sessions and links are made with. They are signed and kept nowhere, so they outlive a restart as long as the key does;
/// what is kept is which sessions have ended. That a link was used is in the log of its turn.
#[derive(Clone)]
pub struct Sessions {
    /// The key that signs them.
    pub key: SigningKey,
    /// Sessions that somebody logged out of.
    pub ended: Arc<dyn EndedSessions>,
}

/// Sessions that count no more, kept in mind until they would have expired.
#[async_trait]
pub trait EndedSessions: Send + Sync {
    /// Whether a session has ended. Never waits for a disk.
    fn has(&self, session: &SessionMark) -> bool;

    /// Ends a session. It is on disk when this returns, however the host ends afterwards. An implementation that has too many
    /// of one token to keep may end that token's older sessions of the same kind with it; it never refuses.
    ///
    /// # Errors
    /// [`NotEnded`]; it still counts.
    async fn end(&self, session: SessionMark, now: Timestamp) -> Result<(), NotEnded>;

    /// Where sessions of a token were ended together: all of them have that were opened in this way and expire at this time or
    /// before. One that is opened now has to expire later, whatever the clock says.
    fn all_until(&self, token: Digest, by_link: bool) -> Option<Timestamp>;
}

/// The disk failed. The text is for the log and never leaves the host.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotEnded(pub String);

/// The operator's choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most bytes of a submitted turn.
    pub turn_bytes: usize,
    /// The most bytes of an answer.
    pub answer_bytes: usize,
    /// The most bytes of a component.
    pub component_bytes: usize,
    /// The longest that a request waits for a turn; what asks for longer waits so long.
    pub max_wait: Span,
    /// How long the body of a request may take to arrive. One second more for each 16 KiB of it that has.
    pub body: Span,
    /// How long the body of a request may take to arrive that opens a session, and so carries no token yet.
    pub log_in_body: Span,
    /// The most event streams of all principals together.
    pub event_streams: usize,
    /// How often a silent event stream says that it is alive.
    pub keep_alive: Span,
    /// How often an open event stream looks whether its token still counts.
    pub recheck: Span,
    /// Under which names the server answers.
    pub hosts: Hosts,
    /// Origins whose pages may use the API with tokens of their own, as browsers write them: `https://app.example.com`.
    pub origins: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            turn_bytes: 4 << 20,
            answer_bytes: 2 << 20,
            component_bytes: 64 << 20,
            max_wait: Span::from_secs(60),
            body: Span::from_secs(30),
            log_in_body: Span::from_secs(5),
            event_streams: 1_024,
            keep_alive: Span::from_secs(15),
            recheck: Span::from_secs(2),
            hosts: Hosts::Local { also: Vec::new() },
            origins: Vec::new(),
        }
    }
}

/// Under which names the server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Under `localhost`, `127.0.0.1`, `[::1]` and these, without a port. For a server that is bound to loopback: a web
    /// page that points its own name at it (DNS rebinding) is refused.
    Local {
        /// Further names, of a proxy in front for instance.
        also: Vec<String>,
    },
    /// Under any. For a server that is meant to be reached from elsewhere.
    Any,
}
