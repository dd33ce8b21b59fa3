//! Principals. A principal comes from the transport's authentication and never from a body.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{
    ConversationId, LinkId, Timestamp,
    ids::{Group, InvalidId},
};

/// The name of a principal, as the audit shows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalId(Arc<str>);

impl PrincipalId {
    /// Checks the name and keeps it.
    ///
    /// # Errors
    /// [`InvalidId`] when it is empty, over 128 bytes, or not made of the characters of an id, `@` and `/`.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-' | b'@' | b'/');
        if text.is_empty() || text.len() > 128 || !text.bytes().all(allowed) {
            return Err(InvalidId::of("principal", "1 to 128 of the characters A-Z a-z 0-9 _ . : - @ /", text));
        }
        Ok(Self(text.into()))
    }

    /// The host itself, for example for an expiry.
    #[must_use]
    pub fn system() -> Self {
        Self("system".into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PrincipalId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

crate::names! {
    /// The permissions of a principal.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Role {
        /// Submits turns, reads and cancels its own.
        Caller = "caller",
        /// Answers approvals and questions.
        Approver = "approver",
        /// Carries out client tools.
        Client = "client",
        /// Everything, also plugins and tokens. It still cannot approve its own calls.
        Admin = "admin",
    }
}

impl FromStr for Role {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::named(text).ok_or_else(|| InvalidId::of("role", "caller, approver, client or admin", text))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Roles(u8);

impl Roles {
    /// Whether the role is in the set.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// The roles in the set.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.has(*role))
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |set, role| set | 1 << role as u8))
    }
}

crate::names! {
    /// How a principal reaches the host. It says nothing about who sits there.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Channel {
        /// A session of the console.
        Console = "console",
        /// A token in a request, or a program that contains the host.
        Api = "api",
        /// A one-time link.
        Link = "link",
        /// A form that an MCP client shows.
        McpForm = "mcp-form",
    }
}

impl Channel {
    /// The channel in a sentence, after "answer it" or "answers".
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Console => "in the console",
            Self::Api => "through the API",
            Self::Link => "with a link",
            Self::McpForm => "in a form of an MCP client",
        }
    }
}

/// Channels through which answers count. Empty: all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Channels(u8);

impl Channels {
    /// Answers through every channel count.
    pub const ANY: Self = Self(0);

    /// The channels through which a call can be approved. A form cannot: its client fills it in, in the name of the caller.
    pub const OF_APPROVALS: Self =
        Self(1 << Channel::Console as u8 | 1 << Channel::Api as u8 | 1 << Channel::Link as u8);

    /// Whether answers through every channel count. By reference, as serde asks.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.0 == 0
    }

    /// Whether answers through this channel count.
    #[must_use]
    pub const fn counts(self, channel: Channel) -> bool {
        self.is_any() || self.0 & (1 << channel as u8) != 0
    }

    /// Whether every answer that counts here counts for the other too.
    #[must_use]
    pub const fn is_within(self, other: Self) -> bool {
        other.is_any() || !self.is_any() && self.0 & !other.0 == 0
    }

    /// The channels that it names. Empty: all channels count.
    pub fn iter(self) -> impl Iterator<Item = Channel> {
        Channel::ALL.into_iter().filter(move |channel| !self.is_any() && self.counts(*channel))
    }
}

impl FromIterator<Channel> for Channels {
    fn from_iter<I: IntoIterator<Item = Channel>>(channels: I) -> Self {
        Self(channels.into_iter().fold(0, |set, channel| set | 1 << channel as u8))
    }
}

/// An authenticated principal with its roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub id: PrincipalId,
    pub roles: Roles,
    pub groups: Vec<Group>,
    /// The only conversation that it may see, if its token is bound to one.
    pub conversation: Option<ConversationId>,
    /// The one-time link that it used, if any. Everything that it does is recorded with the link.
    pub link: Option<LinkId>,
    /// The channel of its request. The transport sets it, never a body.
    pub channel: Channel,
    /// When its token was made. `None`: it has no token, so nobody can revoke it.
    pub since: Option<Timestamp>,
}

/// The principal that a name in a body means. The name is untrusted. The edge looks it up among the tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    Somebody(Principal),
    /// No principal has this name.
    Nobody(PrincipalId),
}

impl Named {
    #[must_use]
    pub fn id(&self) -> &PrincipalId {
        match self {
            Self::Somebody(principal) => &principal.id,
            Self::Nobody(name) => name,
        }
    }
}

impl Principal {
    /// A principal with these roles, no groups and no bound conversation, that uses the API.
    pub fn new(id: PrincipalId, roles: impl IntoIterator<Item = Role>) -> Self {
        Self {
            id,
            roles: roles.into_iter().collect(),
            groups: Vec::new(),
            conversation: None,
            link: None,
            channel: Channel::Api,
            since: None,
        }
    }

    /// Whether it may read a conversation that belongs to `owner`.
    #[must_use]
    pub fn may_see(&self, conversation: &ConversationId, owner: &PrincipalId) -> bool {
        let in_scope = self.conversation.as_ref().is_none_or(|only| only.is_with(conversation));
        in_scope && (self.may_see_others() || (self.id == *owner && self.roles.has(Role::Caller)))
    }

    /// Whether it may read conversations of others, if they are in its scope.
    #[must_use]
    pub fn may_see_others(&self) -> bool {
        [Role::Admin, Role::Approver, Role::Client].into_iter().any(|role| self.roles.has(role))
    }
}
