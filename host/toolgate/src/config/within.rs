//! A whole number with bounds, for limits that have a largest value.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// A number from 1 to `MAX`. A value outside of it is refused with both bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within<const MAX: u64>(u64);

impl<const MAX: u64> Within<MAX> {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as a size. `MAX` is smaller than any address space that this host runs in.
    pub(super) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number in 32 bits, for a `MAX` that fits into them.
    pub(super) fn small(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<'de, const MAX: u64> Deserialize<'de> for Within<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let refused = || de::Error::custom(format!("the value is {number}, and it must be from 1 to {MAX}"));
        let valid = u64::try_from(number).ok().filter(|number| (1..=MAX).contains(number));
        valid.map(Self).ok_or_else(refused)
    }
}

impl<const MAX: u64> JsonSchema for Within<MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("From1To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX })
    }
}
