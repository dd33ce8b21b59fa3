//! Sessions of browsers, and links.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A token to log in with.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    /// The token.
    pub token: String,
}

/// A link to use up.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UseLink {
    /// The link: the part after `/link/`, or all of it.
    pub link: String,
}

/// Who is asking.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The name.
    pub principal: String,
    /// The roles: `caller`, `approver`, `client`, `admin`.
    pub roles: Vec<String>,
    /// The groups.
    pub groups: Vec<String>,
    /// The only conversation that is open to it.
    pub conversation: Option<String>,
    /// What goes with each request of the session other than GET and HEAD, in the header `x-toolgate-csrf`. Absent where a
    /// bearer token asks.
    pub csrf: Option<String>,
    /// When the session ends. Absent where a bearer token asks.
    pub expires_at: Option<String>,
    /// The only suspension that is open to it, where a link opened the session.
    pub only: Option<String>,
    /// The session that a link opened in the same browser beside this one, where there is one.
    pub link: Option<LinkSession>,
}

/// What a link opened beside the session of a log-in. It is for one suspension: requests about that one belong to it, unless they
/// carry the `csrf` of the other session in the header `x-toolgate-csrf`; with its own they belong to it in any case.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LinkSession {
    /// In whose name.
    pub principal: String,
    /// The suspension.
    pub only: String,
    /// What goes with its requests.
    pub csrf: String,
    /// When it ends.
    pub expires_at: String,
}

/// That a session has ended.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LoggedOut {
    /// Always true.
    pub ok: bool,
}

/// For whom a link is to be, and for how long.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeLink {
    /// Who uses it: the name of a token with the role `approver` or `admin`.
    pub principal: String,
    /// For how many milliseconds it counts: at most 604800000, seven days; an hour if absent.
    pub ttl_ms: Option<u64>,
}

/// A link, good for one use.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Its path on this host. Whoever has it may answer in the principal's name.
    pub url: String,
    /// From then on it counts no more.
    pub expires_at: String,
}
