//! Identifiers. Ids that the host mints carry a prefix in their text form, so that one can never be taken for another;
//! ids that callers and operators choose are checked once, here.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is not the id it was taken for. The message names the kind of id and what it must look like.
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
        // A hostile id may be of any length; the message quotes its beginning and says how much there is besides.
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
            /// The id with these 128 bits, usually those of a version 7 UUID so that ids sort by the time of their
            /// making.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The 128 bits; big-endian they sort as the ids do.
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
    /// One turn: the set of calls that one model answer asked for.
    TurnId, "turn_", "turn id"
);
minted!(
    /// One thing that a call waits for. Minted once per call and phase and never reused.
    SuspensionId, "susp_", "suspension id"
);
minted!(
    /// One standing approval: what an approver allowed beforehand.
    StandingId, "standing_", "standing approval's id"
);
minted!(
    /// One link to a suspension. It names the link and does not open anything.
    LinkId, "link_", "link id"
);
minted!(
    /// One run of a host process. A call that is running names the owner that runs it.
    OwnerId, "host_", "host id"
);

macro_rules! chosen {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal, $expected:literal, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and keeps it.
            ///
            /// # Errors
            /// [`InvalidId`] when the text is empty, too long, or holds a character that is not allowed.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                let allowed: fn(u8) -> bool = $allowed;
                if text.is_empty() || text.len() > $max || !text.bytes().all(allowed) {
                    return Err(InvalidId::of($kind, $expected, text));
                }
                Ok(Self(text.into()))
            }

            /// The text as it was given.
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
    /// A conversation, named by its caller.
    ConversationId, "conversation id", 128, "1 to 128 of the characters A-Z a-z 0-9 _ . : -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-')
);
chosen!(
    /// A call, named by its caller and unique in its conversation. Models give these ids; providers use `toolu_…`,
    /// `call_…`.
    CallId, "call id", 128, "1 to 128 of the characters A-Z a-z 0-9 _ . : -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-')
);
chosen!(
    /// A plugin, named after its component's file.
    PluginName, "plugin name", 64, "1 to 64 of the characters a-z A-Z 0-9 _ -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
);
chosen!(
    /// A group of principals. A token says which ones its principal belongs to.
    Group, "group", 64, "1 to 64 of the characters a-z A-Z 0-9 _ . -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')
);

/// The position of a call in its turn, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallIndex(pub u16);

impl CallIndex {
    /// As an index into the turn's calls.
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
    fn chosen_ids_refuse_what_could_escape_a_path_or_a_line() {
        assert!(ConversationId::new("support:42.a-b_c").is_ok());
        for wrong in ["", "a b", "a/b", "a\nb", "ü", &"x".repeat(129)] {
            assert!(ConversationId::new(wrong).is_err(), "{wrong}");
            assert!(CallId::new(wrong).is_err(), "{wrong}");
        }
        assert!(PluginName::new("../etc").is_err());
    }
}
