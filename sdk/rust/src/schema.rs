//! JSON Schemas from Rust types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

/// Derives a schema on demand. A call does not need it, so declarations cost nothing at run time.
pub(crate) type SchemaOf = fn() -> Value;

/// The schema of values that are read: arguments, a person's answer, a client's result. Members with a default are
/// optional.
///
/// A derived one is of draft 2020-12. It has no `$schema`, because that is the draft without one. A type that writes its own
/// schema may name another. Everything is inlined except recursive types, which stay local `$ref`s. There is no `title` at
/// the root, because the name of a Rust type tells a model nothing.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of values that are written: a server tool's result. Members that are always written are required.
pub(crate) fn schema_of_result<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only the schema matters")]
    struct Tree {
        /// Its name.
        name: String,
        children: Vec<Tree>,
        colour: Option<Colour>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[allow(dead_code, reason = "only the schema matters")]
    enum Colour {
        DarkRed,
        Green,
    }

    #[test]
    fn refs_are_local_and_the_rest_is_inline() {
        let schema = schema_of::<Tree>();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["name"], json!({"type": "string", "description": "Its name."}));
        assert_eq!(schema["properties"]["children"]["items"]["$ref"], "#");
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none(), "{schema}");
        assert!(schema["properties"]["colour"].to_string().contains("dark_red"), "{schema}");
    }

    struct Own;

    impl JsonSchema for Own {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Own".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})
        }
    }

    #[test]
    fn own_schema_keeps_its_draft() {
        let own = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"});
        assert_eq!(schema_of::<Own>(), own);
    }

    #[test]
    fn no_arguments_is_an_empty_object() {
        assert_eq!(
            schema_of::<NoArguments>(),
            json!({"type": "object", "additionalProperties": false, "description": "The arguments of a tool that takes none."})
        );
    }
}
