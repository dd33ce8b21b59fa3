//! The server's ports to the host: the handle of the loop, and traits that `toolgate` implements.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use api::{CompilerStatus, Explanation, FindingView, PluginView, SignedCheckpoint};
use async_trait::async_trait;
use axum::body::Bytes;
use axum::http::{Request, Response};
use dispatch::ports::{PolicyQuery, StoreFault};
use domain::{Digest, PluginName, Principal, PrincipalId, Span, Timestamp, principal::Role};
use http_body_util::combinators::UnsyncBoxBody;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::signed::{OpenedBy, SessionMark, SigningKey};

/// Everything that the server uses.
pub struct Ports {
    pub handle: dispatch::Handle,
    pub plugins: Arc<dyn Plugins>,
    /// Explains the operator's rules and policies.
    pub policy: Arc<dyn ExplainPolicy>,
    /// Finds the principal of a token.
    pub auth: Arc<dyn Authenticate>,
    /// Accepts access tokens of an authorization server too. Without it, only `auth` knows principals.
    pub access_tokens: Option<Arc<dyn AccessTokens>>,
    /// Signs and revokes sessions and links.
    pub sessions: Sessions,
    pub backups: Arc<dyn Backups>,
    pub checkpoints: Arc<dyn Checkpoints>,
    /// Answers MCP clients at `/mcp`. Without it, the path does not exist.
    pub mcp_clients: Option<Arc<dyn McpClients>>,
    pub about: About,
    pub settings: ServerSettings,
}

/// Facts about the host that do not change while it runs, for operators.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name among the hosts on the database. `None` if only one host can use the store.
    pub host: Option<String>,
    /// The address that the server listens on.
    pub address: String,
    pub compiler: CompilerStatus,
    /// The public key of its checkpoints.
    pub audit_key: Option<String>,
}

/// The plugins, for operators.
#[async_trait]
pub trait Plugins: Send + Sync {
    /// All live and rejected plugins, sorted by name.
    fn list(&self) -> Vec<PluginView>;

    /// The plugins with a component that is being loaded, sorted by name.
    fn loading(&self) -> Vec<PluginName>;
    /// Whether plugins are still being loaded that the host had when it started.
    fn is_starting(&self) -> bool;

    /// Whether other hosts must have the same plugins. Then the folder of plugins is deployed with each host, and no request changes
    /// them.
    fn are_deployed(&self) -> bool {
        false
    }

    /// Replaces the live component of this name.
    ///
    /// # Errors
    /// [`PutError`]. The live component stays live.
    async fn put(&self, name: PluginName, component: Bytes, by: PrincipalId) -> Result<PluginView, PutError>;

    /// Removes a plugin's tools. Calls that wait for them keep waiting. Returns whether the plugin existed.
    ///
    /// # Errors
    /// [`PluginFault`]. The plugin stays live.
    async fn remove(&self, name: PluginName, by: PrincipalId) -> Result<bool, PluginFault>;
}

/// Makes backups of the host's data, one at a time.
#[async_trait]
pub trait Backups: Send + Sync {
    /// Begins a backup. The receiver gets its parts. After an error, or without its last part, it is not whole, and a
    /// restore refuses it.
    ///
    /// # Errors
    /// [`BackupError`].
    async fn begin(&self) -> std::result::Result<mpsc::Receiver<io::Result<Vec<u8>>>, BackupError>;
}

/// Why a backup did not begin.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("this host keeps its turns in memory only, so there is nothing to back up")]
    InMemory,
    #[error(
        "this host keeps its turns in a database: back that up with the tools of PostgreSQL, such as `pg_dump`, and the data \
         folder with your own"
    )]
    InDatabase,
    #[error("another backup is being made; try again when it has ended")]
    Busy,
    #[error("the disk of the host has no room for a copy of the database beside its reserve")]
    NoRoom,
    #[error(transparent)]
    Store(#[from] StoreFault),
    #[error("the copy for the backup cannot be made: {0}")]
    Io(#[from] io::Error),
}

/// Reads the signed checkpoints of the audit.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// The newest one. `None` before the first removal.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn newest(&self) -> io::Result<Option<SignedCheckpoint>>;
}

/// The body of an answer to an MCP client.
pub type McpBody = UnsyncBoxBody<Bytes, Infallible>;

/// Answers the messages of MCP clients (Streamable HTTP).
#[async_trait]
pub trait McpClients: Send + Sync {
    /// Answers one message of this principal. The server has checked the host name, the origin and the token. A body of unknown
    /// size is a stream, which the server ends with the token or with the host. HTTP takes each frame when it asks for it. If the
    /// future or the body is dropped, the client has left.
    async fn answer(&self, by: Principal, request: Request<Bytes>, unread: Arc<dyn McpUnread>) -> Response<McpBody>;
}

/// Counts the bytes of an answer that an MCP client has not read yet.
#[async_trait]
pub trait McpUnread: Send + Sync {
    /// Waits until the principal has read enough to get more. The memory for a read is reserved until the value is dropped.
    async fn reserve(&self) -> Box<dyn Send + Sync>;

    /// Counts a message of this size until the value is dropped. The server counts a frame once HTTP has taken it.
    ///
    /// # Errors
    /// The reason, if the principal has too much else unread. Then the message is not sent.
    fn charge(&self, bytes: usize) -> std::result::Result<Box<dyn Send + Sync>, String>;
}

/// Explains how the operator's rules and policies would decide a call.
#[async_trait]
pub trait ExplainPolicy: Send + Sync {
    /// The decision about a call. Its `invalid` is empty, because the caller of this trait checks the schema.
    async fn explain(&self, question: PolicyQuery) -> Explanation;
}

/// Why a plugin was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// It breaks these rules.
    #[error("the plugin was refused")]
    Refused(Vec<FindingView>),
    #[error(transparent)]
    Fault(#[from] PluginFault),
}

/// The host failed to change a plugin. The text is for the log only and never leaves the host.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PluginFault(pub String);

/// Finds the principal of a token.
///
/// Implementations compare in constant time or look up a digest of the token. Otherwise the response time would show
/// how much of a guess is right. The server itself never compares tokens.
#[async_trait]
pub trait Authenticate: Send + Sync {
    /// Learns of new and of revoked tokens. The server calls this before each request to a route that authenticates, each
    /// check of an open stream and each link. It may wait for a disk, in another thread. The other methods never do.
    async fn refresh(&self) {}

    /// Whether the last [`Authenticate::refresh`] could read the tokens. If not, no token is valid now.
    fn is_readable(&self) -> bool {
        true
    }

    /// The principal of this token. `None` for an unknown token.
    fn principal(&self, token: &str) -> Option<Principal>;

    /// The principal of the token with this SHA-256. A session holds the SHA-256 of its token and is valid while this
    /// returns a principal.
    fn holder(&self, token: Digest) -> Option<Principal>;

    /// The principal of this name and the SHA-256 of its token.
    fn named(&self, name: &PrincipalId) -> Option<(Principal, Digest)>;
}

/// Checks the access tokens of an authorization server (OAuth 2.1).
#[async_trait]
pub trait AccessTokens: Send + Sync {
    /// The holder of this token. It may wait some seconds for the keys of the authorization server, in another thread.
    ///
    /// # Errors
    /// [`TokenRefusal`].
    async fn verify(&self, token: &str, now: Timestamp) -> Result<AccessToken, TokenRefusal>;

    /// The host as a protected resource.
    fn resource(&self) -> &ProtectedResource;

    /// The scope to ask for if this role is missing.
    fn scope_with(&self, role: Role) -> Option<String>;
}

/// A valid access token. Nobody revokes it here, so it is valid until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    pub principal: Principal,
    pub expires: Timestamp,
}

/// Why an access token is not accepted, in a sentence for its holder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    #[error("{0}")]
    Invalid(String),
    /// It cannot be checked now.
    #[error("{0}")]
    Unchecked(String),
}

/// The metadata of the host as a protected resource (RFC 9728).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProtectedResource {
    /// The identifier of the resource: the URL of `/mcp`.
    pub resource: String,
    pub authorization_servers: Vec<String>,
    pub scopes_supported: Vec<String>,
    pub bearer_methods_supported: [&'static str; 1],
    /// The URL of this metadata.
    #[serde(skip)]
    pub url: String,
}

/// Signs and revokes sessions and links. They are signed and not stored, so they survive a restart if the key does.
/// Only revoked sessions are stored. The use of a link is an event of its turn.
#[derive(Clone)]
pub struct Sessions {
    /// The key that signs them.
    pub key: SigningKey,
    pub revoked: Arc<dyn RevokedSessions>,
}

/// Sessions that were revoked by a log-out. They are stored until they would have expired.
#[async_trait]
pub trait RevokedSessions: Send + Sync {
    /// Learns of sessions that other hosts have revoked, as [`Authenticate::refresh`] does of tokens.
    async fn refresh(&self) {}

    /// Whether a session was revoked. Never waits for a disk. If this is not known now, every session counts as revoked.
    fn has(&self, session: &SessionMark) -> bool;

    /// Revokes a session. When this returns, the revocation is on disk and survives a crash. An implementation with a
    /// limit per token may revoke that token's older sessions of the same kind too. It never refuses.
    ///
    /// # Errors
    /// [`NotRevoked`]. The session is still valid.
    async fn revoke(&self, session: SessionMark, now: Timestamp) -> Result<(), NotRevoked>;

    /// The time until which all sessions of a token are revoked, if they were opened in this way: sessions that expire
    /// then or earlier. A new session must expire later, even if the clock was set back.
    fn revoked_until(&self, token: Digest, opened_by: OpenedBy) -> Option<Timestamp>;
}

/// The disk failed. The text is for the log only and never leaves the host.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotRevoked(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The maximum size of a submitted turn, in bytes.
    pub turn_bytes: usize,
    /// The maximum size of an answer, in bytes.
    pub answer_bytes: usize,
    /// The maximum size of a component, in bytes.
    pub component_bytes: usize,
    /// The maximum time that a request waits for a turn, even if it asks for more.
    pub max_wait: Span,
    /// How long the body of a request may take to arrive. Each 16 KiB that arrive add one second.
    pub body: Span,
    /// The same for a request that carries no token: it opens a session, or sends a result to a link.
    pub log_in_body: Span,
    /// The maximum number of event streams of all principals together.
    pub event_streams: usize,
    /// The maximum number of requests in flight of all principals together that are neither approver nor admin.
    pub requests: usize,
    /// Limits on requests that occupy a connection for long.
    pub long_requests: LongRequests,
    /// The maximum size of the responses and events that one principal has requested and not read yet, in bytes. One
    /// response of any size is allowed. A stream waits before it reads more.
    pub unread_bytes: usize,
    /// The maximum size of the bodies that one principal is sending, in bytes. One body of an allowed size always fits.
    pub bodies_bytes: usize,
    /// How often an idle event stream sends a keep-alive comment.
    pub keep_alive: Span,
    /// How often an open event stream checks that its credential is still valid.
    pub recheck: Span,
    /// The host names that the server accepts.
    pub hosts: Hosts,
    /// Origins whose pages may use the API with tokens of their own, as browsers write them: `https://app.example.com`.
    pub origins: Vec<String>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            turn_bytes: 4 << 20,
            answer_bytes: 2 << 20,
            component_bytes: 64 << 20,
            max_wait: Span::from_secs(60),
            body: Span::from_secs(30),
            log_in_body: Span::from_secs(5),
            event_streams: 1_024,
            requests: Self::requests_of(1_024),
            long_requests: LongRequests::of(1_024),
            unread_bytes: 64 << 20,
            bodies_bytes: 64 << 20,
            keep_alive: Span::from_secs(15),
            recheck: Span::from_secs(2),
            hosts: Hosts::Local { also: Vec::new() },
            origins: Vec::new(),
        }
    }
}

impl ServerSettings {
    /// The requests of principals that are neither approver nor admin, for a server with `connections` connections: seven
    /// eighths of them.
    #[must_use]
    pub fn requests_of(connections: usize) -> usize {
        (connections - connections / 8).max(1)
    }
}

/// Limits on long requests: event streams, requests that wait for a turn, and ephemeral turns. Each occupies a
/// connection for as long as it lasts, so they get only part of the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongRequests {
    /// The maximum number of all principals together.
    pub max: usize,
    /// How many of these only approvers and admins can have.
    pub reserved: usize,
    /// The maximum number of one principal.
    pub max_per_principal: usize,
}

impl LongRequests {
    /// The default for a server with `connections` connections: three quarters of them.
    #[must_use]
    pub fn of(connections: usize) -> Self {
        Self::of_max((connections - connections / 4).max(1))
    }

    /// The default parts of this number: a quarter is reserved, and one principal gets a third.
    #[must_use]
    pub fn of_max(max: usize) -> Self {
        Self { max, reserved: max / 4, max_per_principal: max.div_ceil(3) }
    }
}

/// The host names that the server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// `localhost`, `127.0.0.1`, `[::1]` and these, without a port. For a server that is bound to loopback: it refuses
    /// a web page that resolves its own name to it (DNS rebinding).
    Local {
        /// Further names, for example of a proxy in front.
        also: Vec<String>,
    },
    /// Any name. For a server that other machines use.
    Any,
}
