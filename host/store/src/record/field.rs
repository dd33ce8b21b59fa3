//! How single values are written: ids and digests as their texts, times as milliseconds, JSON as a string.
//!
//! The domain has no serde, so everything that is stored implements [`Field`] here, and derived code reaches it with
//! `#[serde(with = "field")]`. Large values are shared and not copied on the way to disk.
//!
//! JSON that passes through is kept as a JSON string and not embedded. An approval is bound to a digest over the
//! bytes of the arguments, and an embedded value would lose the white space around it. A text that is not valid JSON would
//! make the whole record unreadable. Escaping costs no more than the check that would make embedding safe.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use domain::{
    CallId, CallIndex, ConversationId, Digest, Json, LinkId, OwnerId, PluginName, PrincipalId, SignalName, Span,
    StandingId, SuspensionId, Timestamp, ToolName, TurnId, approvers::Who,
};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that can stand in a record.
pub(crate) trait Field: Sized {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

pub(crate) fn serialize<T: Field, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.write(serializer)
}

pub(crate) fn deserialize<'de, T: Field, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(deserializer)
}

/// A borrowed field, for serde.
pub(super) struct Lent<'a, T>(pub(super) &'a T);

/// Borrowed fields in a row, for serde.
pub(super) struct LentSlice<'a, T>(pub(super) &'a [T]);

/// A field that was read, from serde.
pub(super) struct Stored<T>(pub(super) T);

impl<T: Field> Serialize for Lent<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

impl<T: Field> Serialize for LentSlice<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Lent))
    }
}

impl<'de, T: Field> Deserialize<'de> for Stored<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Self)
    }
}

impl<T: Field> Field for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(Lent).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<Stored<T>>::deserialize(deserializer)?.map(|stored| stored.0))
    }
}

impl<T: Field> Field for Vec<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LentSlice(self).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Stored<T>>::deserialize(deserializer)?.into_iter().map(|stored| stored.0).collect())
    }
}

impl<T: Field> Field for Arc<[T]> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LentSlice(self).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<T>::read(deserializer)?.into())
    }
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.serialize(serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize(deserializer)
            }
        }
    )*};
}

plain!(u16, u32, u64, usize, bool, String, Arc<str>);

impl Field for CallIndex {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u16::read(deserializer).map(Self)
    }
}

macro_rules! pointers {
    ($($pointer:ident),*) => {$(
        impl<T: Field> Field for $pointer<T> {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                T::write(self, serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                T::read(deserializer).map($pointer::new)
            }
        }
    )*};
}

pointers!(Arc, Box);

/// Reads a string without keeping it: ids are parsed where they lie.
struct Parsed<T>(PhantomData<T>);

impl<T: FromStr<Err: Display>> Visitor<'_> for Parsed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text of an id")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! texts {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Parsed(PhantomData))
            }
        }
    )*};
}

texts!(
    TurnId,
    SuspensionId,
    StandingId,
    LinkId,
    OwnerId,
    ConversationId,
    CallId,
    PluginName,
    PrincipalId,
    SignalName,
    Who
);

/// Written without the formatting machinery: a commit holds up to three digests for each of its calls.
impl Field for Digest {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const PREFIX: &[u8; 7] = b"sha256:";
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 71];
        let (prefix, digits) = text.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.as_bytes()) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        serializer.serialize_str(std::str::from_utf8(&text).map_err(serde::ser::Error::custom)?)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Parsed(PhantomData))
    }
}

macro_rules! millis {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(self.millis())
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                u64::deserialize(deserializer).map(Self::from_millis)
            }
        }
    )*};
}

millis!(Timestamp, Span);

impl Field for Json {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::unchecked)
    }
}

impl Field for ToolName {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
