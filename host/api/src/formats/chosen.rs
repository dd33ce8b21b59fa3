//! The format that a request or a command chooses: a provider's, or toolgate's own.

use std::iter;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{Answer, FORMATS, Format, List};

/// The name of toolgate's own format.
const OWN: &str = "toolgate";

/// A format, chosen by its name. The default is toolgate's own, which has all properties.
pub struct Chosen<T: 'static>(Option<&'static T>);

/// A part that not every format has.
pub trait Part: Sized + 'static {
    /// The part, for the API document.
    const ABOUT: &'static str;

    /// This part of a format.
    fn of(format: &'static Format) -> Option<&'static Self>;
}

impl Part for List {
    const ABOUT: &'static str = "The format of a list of tools.";

    fn of(format: &'static Format) -> Option<&'static Self> {
        format.list.as_ref()
    }
}

impl Part for Answer {
    const ABOUT: &'static str = "The format of a turn.";

    fn of(format: &'static Format) -> Option<&'static Self> {
        format.answer.as_ref()
    }
}

impl<T: Part> Chosen<T> {
    /// The names that can be chosen.
    pub fn names() -> impl Iterator<Item = &'static str> {
        iter::once(OWN).chain(parts::<T>().map(|(name, _)| name))
    }

    /// Toolgate's own format.
    pub const OWN: Self = Self(None);

    /// Whether it is toolgate's own format.
    #[must_use]
    pub const fn is_own(self) -> bool {
        self.0.is_none()
    }

    pub(super) const fn of_provider(self) -> Option<&'static T> {
        self.0
    }
}

/// The formats that have a part, by name.
fn parts<T: Part>() -> impl Iterator<Item = (&'static str, &'static T)> {
    FORMATS.iter().filter_map(|format| Some((format.name, T::of(format)?)))
}

impl<T> Clone for Chosen<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Chosen<T> {}

impl<T> Default for Chosen<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Part> Deserialize<'de> for Chosen<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let chosen = String::deserialize(deserializer)?;
        if chosen == OWN {
            return Ok(Self::OWN);
        }
        let found = parts::<T>().find(|(name, _)| *name == chosen);
        found.map(|(_, part)| Self(Some(part))).ok_or_else(|| {
            let names: Vec<_> = Self::names().map(|name| format!("`{name}`")).collect();
            D::Error::custom(format!("unknown variant `{chosen}`, expected one of {}", names.join(", ")))
        })
    }
}

impl<T: Part> PartialSchema for Chosen<T> {
    fn schema() -> RefOr<Schema> {
        let names = Some(Self::names());
        ObjectBuilder::new().schema_type(Type::String).description(Some(T::ABOUT)).enum_values(names).into()
    }
}

impl<T: Part> ToSchema for Chosen<T> {}
