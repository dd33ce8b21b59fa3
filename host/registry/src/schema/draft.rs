//! The drafts of JSON Schema that the host validates against.

use std::fmt;

use serde_json::Value;

/// A draft of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draft {
    Draft07,
    Draft201909,
    Draft202012,
}

impl Draft {
    /// The draft that a schema names in `$schema`; 2020-12 if it names none. `None`: the host knows no such draft.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        let Some(named) = schema.get("$schema") else { return Some(Self::Draft202012) };
        let (_, address) = named.as_str()?.trim_end_matches('#').split_once("://")?;
        match address {
            "json-schema.org/draft-07/schema" => Some(Self::Draft07),
            "json-schema.org/draft/2019-09/schema" => Some(Self::Draft201909),
            "json-schema.org/draft/2020-12/schema" => Some(Self::Draft202012),
            _ => None,
        }
    }

    /// The validator of schemas themselves.
    pub(crate) fn meta(self) -> jsonschema::meta::MetaValidator<'static> {
        match self {
            Self::Draft07 => jsonschema::draft7::meta::validator(),
            Self::Draft201909 => jsonschema::draft201909::meta::validator(),
            Self::Draft202012 => jsonschema::draft202012::meta::validator(),
        }
    }

    /// The options for a validator. Draft-07 checks `format` and the content of strings, and later drafts do not. Here no
    /// draft does, so that the same keyword means the same in every plugin.
    pub(super) fn options<'a>(self) -> jsonschema::ValidationOptions<'a> {
        let options = match self {
            Self::Draft07 => jsonschema::draft7::options(),
            Self::Draft201909 => jsonschema::draft201909::options(),
            Self::Draft202012 => jsonschema::draft202012::options(),
        };
        let encodings = ["base64", "base64url", "base32", "base32hex", "base16"];
        let options = options.should_validate_formats(false).without_content_media_type_support("application/json");
        encodings.into_iter().fold(options, jsonschema::ValidationOptions::without_content_encoding_support)
    }

    /// The anchors that a schema has in this draft.
    pub(super) fn anchors(self, schema: &Value) -> impl Iterator<Item = &str> {
        let keywords: &[_] = match self {
            Self::Draft07 => &["$id"],
            Self::Draft201909 => &["$anchor"],
            Self::Draft202012 => &["$anchor", "$dynamicAnchor"],
        };
        let names = keywords.iter().filter_map(|keyword| schema.get(keyword).and_then(Value::as_str));
        names.filter_map(move |name| if self == Self::Draft07 { anchor(name) } else { Some(name) })
    }

    /// Whether an `$id` only names an anchor of the document.
    pub(crate) fn is_anchor(self, id: &str) -> bool {
        self == Self::Draft07 && anchor(id).is_some()
    }
}

/// The anchor that an `$id` of draft-07 names: a plain name after `#`.
fn anchor(id: &str) -> Option<&str> {
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(&b));
    id.strip_prefix('#').filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()) && plain(name))
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draft07 => "draft-07",
            Self::Draft201909 => "draft 2019-09",
            Self::Draft202012 => "draft 2020-12",
        })
    }
}
