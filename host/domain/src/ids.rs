//! Identifiers. The host generates some of them. Their text starts with a prefix for each kind, so that an id of one
//! kind is never accepted as another. Callers and operators choose the others. This module checks those once.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A text is not a valid id. The message names the kind of the id and its expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}{rest} is not a {kind}: expected {expected}")]
pub struct InvalidId {
    kind: &'static str,
    expected: &'static str,
    text: String,
    rest: String,
}

impl InvalidId {
    pub(crate) fn of(kind: &'static str, expected: &'static str, text: &str) -> Self {
        // A hostile id can have any length. The message quotes its beginning and gives the size of the rest.
        let (text, rest) = text.split_at(text.char_indices().nth(80).map_or(text.len(), |(end, _)| end));
        let rest = if rest.is_empty() { String::new() } else { format!(" and {} bytes more", rest.len()) };
        Self { kind, expected, text: text.to_owned(), rest }
    }
}

macro_rules! minted {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// Makes an id from 128 bits. The bits of a version 7 UUID make ids sort by creation time.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The 128 bits. As big-endian bytes, they sort in the order of the ids.
            #[must_use]
            pub const fn bits(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:032x}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let wrong = || InvalidId::of($kind, concat!("`", $prefix, "` and 32 lower-case hexadecimal digits"), text);
                let digits = text.strip_prefix($prefix).ok_or_else(wrong)?;
                let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                if digits.len() != 32 || !digits.bytes().all(lower) {
                    return Err(wrong());
                }
                u128::from_str_radix(digits, 16).map(Self).map_err(|_| wrong())
            }
        }
    };
}

minted!(
    /// A turn: the calls that one answer of a model requests.
    TurnId, "turn_", "turn id"
);
minted!(
    /// A suspension: an approval, an answer or a client that a call waits for. Each phase of a call has at most one.
    /// The id is never reused.
    SuspensionId, "susp_", "suspension id"
);
minted!(
    /// A standing approval: an approver's permission for later calls.
    StandingId, "standing_", "standing approval's id"
);
minted!(
    /// A link to a suspension. The id names the link. It does not grant access.
    LinkId, "link_", "link id"
);
minted!(
    /// One run of a host process. A running call names the owner that runs it.
    OwnerId, "host_", "host id"
);

macro_rules! chosen {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal, $expected:literal, $allowed:expr $(, after $mark:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text.
            ///
            /// # Errors
            /// [`InvalidId`] if the text is empty, is too long, or contains a character that is not allowed.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                let allowed: fn(u8) -> bool = $allowed;
                let chosen = text$(.strip_prefix($mark).unwrap_or(text))?;
                if chosen.is_empty() || chosen.len() > $max || !chosen.bytes().all(allowed) {
                    return Err(InvalidId::of($kind, $expected, text));
                }
                Ok(Self(text.into()))
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }
    };
}

chosen!(
    /// A conversation. Its caller chooses the id. An id that begins with `~` is of the nested turns of a conversation: the
    /// rest is its id, and no caller submits to it.
    ConversationId, "conversation id", 128, "1 to 128 of the characters A-Z a-z 0-9 _ . : -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'), after "~"
);

impl ConversationId {
    /// The conversation of the nested turns of this one, and of all turns that are nested in those.
    #[must_use]
    pub fn of_nested(&self) -> Self {
        if self.is_of_nested() { self.clone() } else { Self(format!("~{self}").into()) }
    }

    /// The conversation of the caller: this one, or the one whose nested turns this one has.
    #[must_use]
    pub fn of_caller(&self) -> Self {
        Self(self.0.strip_prefix('~').unwrap_or(&self.0).into())
    }

    /// Whether one of them has the nested turns of the other, or both are the same.
    #[must_use]
    pub fn is_with(&self, other: &Self) -> bool {
        self.of_nested() == other.of_nested()
    }

    /// Whether only the host submits to it.
    #[must_use]
    pub fn is_of_nested(&self) -> bool {
        self.0.starts_with('~')
    }
}
chosen!(
    /// A call. Its caller chooses the id, which is unique in its conversation. Models generate such ids. Providers use
    /// `toolu_…` and `call_…`.
    CallId, "call id", 128, "1 to 128 of the characters A-Z a-z 0-9 _ . : -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-')
);
chosen!(
    /// A plugin. Its name comes from the file name of its component. A name that begins with `mcp:` is of an upstream MCP
    /// server: the rest is its name in the configuration, and no component has it.
    PluginName, "plugin name", 64, "1 to 64 of the characters a-z A-Z 0-9 _ -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'), after "mcp:"
);

impl PluginName {
    /// The plugin for the tools of an upstream MCP server.
    ///
    /// # Errors
    /// [`InvalidId`] if the name cannot name a plugin.
    pub fn of_upstream(name: &str) -> Result<Self, InvalidId> {
        Self::new(&format!("mcp:{}", Self::new(name)?))
    }

    /// Whether it is an upstream MCP server, whose calls run outside the sandbox.
    #[must_use]
    pub fn is_upstream(&self) -> bool {
        self.upstream().is_some()
    }

    /// The name of the upstream MCP server in the configuration.
    #[must_use]
    pub fn upstream(&self) -> Option<&str> {
        self.0.strip_prefix("mcp:")
    }
}

chosen!(
    /// A group of principals. A token lists the groups of its principal.
    Group, "group", 64, "1 to 64 of the characters a-z A-Z 0-9 _ . -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')
);

chosen!(
    /// The name of a signal. A tool chooses it. No two open waits of a conversation have the same name.
    SignalName, "signal name", 64, "1 to 64 of the characters a-z A-Z 0-9 _ . -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')
);

/// The position of a call in its turn, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallIndex(pub u16);

impl CallIndex {
    /// The index into the turn's calls.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_id_round_trips_and_needs_its_own_prefix() {
        let id = TurnId::from_bits(0x0193_5a7c_0000_7000_8000_0000_0000_0001);
        assert_eq!(id.to_string(), "turn_01935a7c000070008000000000000001");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "susp_01935a7c000070008000000000000001",
            "turn_01935A7C000070008000000000000001",
            "turn_01935a7c00007000800000000000001",
            "turn_+1935a7c000070008000000000000001",
            "",
        ] {
            assert!(wrong.parse::<TurnId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn nested_turns_of_a_conversation_have_one_conversation() {
        let longest = ConversationId::new(&"x".repeat(128)).unwrap();
        let nested = longest.of_nested();
        assert!(nested.is_of_nested() && !longest.is_of_nested());
        assert!(
            longest.is_with(&nested)
                && nested.is_with(&longest)
                && !nested.is_with(&ConversationId::new("~x").unwrap())
        );
        assert_eq!((nested.of_nested(), nested.of_caller()), (nested.clone(), longest));
        assert_eq!(ConversationId::new(nested.as_str()), Ok(nested), "it is read again");
        assert!(CallId::new("~a").is_err());
    }

    #[test]
    fn chosen_ids_refuse_what_could_escape_a_path_or_a_line() {
        assert!(ConversationId::new("support:42.a-b_c").is_ok());
        for wrong in ["", "a b", "a/b", "a\nb", "ü", "~", "a~", "~~a", &"x".repeat(129)] {
            assert!(ConversationId::new(wrong).is_err(), "{wrong}");
            assert!(CallId::new(wrong).is_err(), "{wrong}");
        }
        assert!(PluginName::new("../etc").is_err());
    }

    #[test]
    fn plugin_of_an_upstream_has_a_name_of_its_own() {
        let upstream = PluginName::of_upstream("github").unwrap();
        assert_eq!((upstream.as_str(), upstream.upstream()), ("mcp:github", Some("github")));
        assert_eq!(PluginName::new("mcp:github"), Ok(upstream), "it is read again");
        assert!(!PluginName::new("github").unwrap().is_upstream());
        for wrong in ["", "mcp:a", "a:b", "mcp:"] {
            assert!(PluginName::of_upstream(wrong).is_err(), "{wrong}");
        }
    }
}
