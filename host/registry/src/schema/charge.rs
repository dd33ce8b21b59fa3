//! Charges the work of a validation while it runs.
//!
//! The estimate in `cost.rs` takes the most expensive path through a schema. Most values take a cheaper one: the first
//! alternative fits, or a condition does not apply. So a value that may cost too much is validated with a schema in which
//! each subschema charges its keywords first. When the work is used up, each subschema fails at once.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use super::cost::{Extent, rates_of};
use super::pattern::Work;
use super::rates::Rates;

/// The keyword that charges the work of the schema beside it.
pub(super) const KEYWORD: &str = "toolgate:charge";

/// The costs of the keywords of one schema, without its subschemas.
struct Charge {
    /// For the value itself.
    own: Rates,
    /// For each of its members or items.
    members: Rates,
    is_unique: bool,
}

/// The schema, which first charges its keywords.
pub(super) fn charging(original: &Value, schema: Value) -> Value {
    let (own, members, is_unique) = rates_of(original);
    json!({"allOf": [{KEYWORD: [own.0, members.0, is_unique]}, schema]})
}

/// Makes the keyword.
///
/// # Errors
/// If its value has another form, because a plugin wrote it.
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let (own, members, is_unique): ([u64; 4], [u64; 4], bool) = serde_json::from_value(value.clone())
        .map_err(|_| ValidationError::schema(format!("the keyword `{KEYWORD}` is the host's own")))?;
    Ok(Box::new(Charge { own: Rates(own), members: Rates(members), is_unique }))
}

impl Charge {
    fn cost(&self, value: &Value) -> u64 {
        let (own, members) = match value {
            Value::String(text) => (Rates::of_text(text), Rates::default()),
            Value::Array(items) => (Rates::default(), Rates([items.len() as u64, 0, 0, 0])),
            Value::Object(members) => {
                let names = members.keys().map(|name| Rates::of_text(name)).fold(Rates::default(), Rates::plus);
                (Rates::default(), names.plus(Rates([members.len() as u64, 0, 0, 0])))
            }
            _ => (Rates::default(), Rates::default()),
        };
        let unique = if self.is_unique && value.is_array() { Extent::of(value).unique() } else { 0 };
        let own = self.own.times(own.plus(Rates([1, 0, 0, 0])));
        own.saturating_add(self.members.times(members)).saturating_add(unique)
    }
}

impl<'i> Keyword<'i> for Charge {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) { Ok(()) } else { Err(ValidationError::custom("the work is used up")) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        // Computing the cost looks at all names.
        !Work::is_over() && Work::charge(self.cost(value))
    }
}
