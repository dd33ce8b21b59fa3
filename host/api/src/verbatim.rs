//! JSON that passes through unchanged.

use domain::Json;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Any JSON value, byte for byte as its author wrote it, including number forms, the order of members and white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verbatim(pub Json);

impl Verbatim {
    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl From<&Json> for Verbatim {
    fn from(json: &Json) -> Self {
        Self(json.clone())
    }
}

/// Checks the text first, because text that is not JSON would break the value around it.
impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Verbatim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Json::unchecked(raw)))
    }
}

impl PartialSchema for Verbatim {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Any JSON value, verbatim.")).into()
    }
}

impl ToSchema for Verbatim {}

/// For optional members in which `null` is a value: `None` means absent.
pub(crate) fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}
