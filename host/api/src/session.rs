//! Sessions of browsers, and one-time links.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Role;

/// A token to log in with.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    /// The token of the principal.
    pub token: String,
}

/// A one-time link to use.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UseLink {
    /// The whole link, or the part after `/link/`.
    pub link: String,
}

/// The principal that makes the request.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The name of the principal.
    pub principal: String,
    /// The roles of the principal.
    pub roles: Vec<Role>,
    /// The groups of the principal.
    pub groups: Vec<String>,
    /// The only conversation that it may access.
    pub conversation: Option<String>,
    /// The value of the header `x-toolgate-csrf`, which each request of the session except GET and HEAD carries. Absent
    /// for a bearer token.
    pub csrf: Option<String>,
    /// When the session ends. Absent for a bearer token.
    pub expires_at: Option<String>,
    /// The only suspension that it may access, if a link opened the session.
    pub only: Option<String>,
    /// The second session in the same browser that a link opened, if there is one.
    pub link: Option<LinkSession>,
}

/// A session that a link opened beside the session of a log-in. It covers one suspension. A request about that
/// suspension belongs to it, unless the request carries the `csrf` of the other session in the header
/// `x-toolgate-csrf`. A request with the `csrf` of this session always belongs to it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LinkSession {
    /// The principal that it acts for.
    pub principal: String,
    /// The only suspension that it may access.
    pub only: String,
    /// The value of the header `x-toolgate-csrf` for its requests.
    pub csrf: String,
    /// When the session ends.
    pub expires_at: String,
}

/// The response to a log-out.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LoggedOut {
    /// Always true. A failed log-out is a problem.
    pub ok: bool,
}

/// A one-time link to make.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeLink {
    /// The principal that may use it: the name of a token with the role `approver` or `admin`, or `caller` for an external
    /// wait. If absent: the requester.
    pub principal: Option<String>,
    /// How long it is valid, in milliseconds: at most 604800000, which is seven days. One hour if absent.
    pub ttl_ms: Option<u64>,
}

/// A one-time link.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Its path on this host. Anyone who has it can answer as the principal.
    pub url: String,
    /// When it expires.
    pub expires_at: String,
}
