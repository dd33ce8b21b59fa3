//! The declaration of one tool, as its server sent it.

use domain::json::Value;
use domain::{Digest, Json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The largest name of a tool, in bytes. The protocol allows 128.
const MAX_NAME: usize = 128;

/// The parts of a declaration that a model or a person can see, verbatim.
#[derive(Debug, Clone)]
pub struct Declaration {
    stored: Stored,
    annotations: Annotations,
    digest: Digest,
}

/// The form in the file of pins, which is also the form on the wire. Other members of the wire are dropped.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    input_schema: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<Box<RawValue>>,
}

/// The server's statements about a tool. Nothing is decided by them alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    pub title: Option<String>,
    #[serde(rename = "readOnlyHint")]
    pub read_only: Option<bool>,
    #[serde(rename = "destructiveHint")]
    pub destructive: Option<bool>,
    #[serde(rename = "idempotentHint")]
    pub idempotent: Option<bool>,
    #[serde(rename = "openWorldHint")]
    pub open_world: Option<bool>,
}

impl Declaration {
    /// Reads a declaration. The text was checked: one value without duplicate keys.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let stored: Stored = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if stored.name.is_empty() || stored.name.len() > MAX_NAME {
            return Err(format!("a name has 1 to {MAX_NAME} bytes"));
        }
        let annotations = match &stored.annotations {
            Some(annotations) => {
                serde_json::from_str(annotations.get()).map_err(|error| format!("its annotations: {error}"))?
            }
            None => Annotations::default(),
        };
        let mut declaration = Self { stored, annotations, digest: Digest::of("") };
        let parts = declaration.parts().into_iter().flat_map(|(part, text)| [part.to_owned(), text]);
        let parts: Vec<String> = parts.collect();
        declaration.digest = Digest::of_parts(&parts.iter().map(String::as_bytes).collect::<Vec<_>>());
        Ok(declaration)
    }

    /// The server's own name for it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.stored.name
    }

    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.stored.title.as_deref().or(self.annotations.title.as_deref())
    }

    /// The description for the model. The protocol does not demand one.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.stored.description.as_deref().filter(|text| !text.trim().is_empty())
    }

    #[must_use]
    pub fn input_schema(&self) -> &str {
        self.stored.input_schema.get()
    }

    #[must_use]
    pub fn output_schema(&self) -> Option<&str> {
        self.stored.output_schema.as_deref().map(RawValue::get)
    }

    #[must_use]
    pub const fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// Over all parts. The order of keys and white space in schemas do not count, because some servers change them at each start.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Its parts with their texts. A missing part is left out. Values are written in one form.
    pub(crate) fn parts(&self) -> Vec<(&'static str, String)> {
        let Stored { name, title, description, input_schema, output_schema, annotations } = &self.stored;
        let raw = |raw: &RawValue| canonical(raw.get());
        let all = [
            ("name", Some(name.clone())),
            ("title", title.clone()),
            ("description", description.clone()),
            ("inputSchema", Some(raw(input_schema))),
            ("outputSchema", output_schema.as_deref().map(raw)),
            ("annotations", annotations.as_deref().map(raw)),
        ];
        all.into_iter().filter_map(|(part, text)| Some((part, text?))).collect()
    }

    /// The text that is stored.
    pub(crate) fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        serde_json::value::to_raw_value(&self.stored)
    }
}

/// A JSON text with sorted keys and no white space. A text that is not JSON stays as it is.
fn canonical(text: &str) -> String {
    let Ok(value) = Json::unchecked(text).value() else { return text.to_owned() };
    let mut written = String::with_capacity(text.len());
    write(&value, &mut written);
    written
}

fn write(value: &Value, to: &mut String) {
    match value {
        Value::Array(items) => {
            to.push('[');
            for (position, item) in items.iter().enumerate() {
                to.push_str(if position == 0 { "" } else { "," });
                write(item, to);
            }
            to.push(']');
        }
        Value::Object(members) => {
            to.push('{');
            for (position, (name, value)) in members.sorted().into_iter().enumerate() {
                to.push_str(if position == 0 { "" } else { "," });
                to.push_str(&domain::json::quote(name));
                to.push(':');
                write(value, to);
            }
            to.push('}');
        }
        scalar => to.push_str(&scalar.to_json()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Declaration::read(text).unwrap().digest()
    }

    #[test]
    fn every_part_changes_the_digest_and_the_order_of_keys_does_not() {
        let one = r#"{"name":"a","description":"b","inputSchema":{"type":"object","title":"c"},"annotations":{}}"#;
        let other = r#"{"inputSchema":{ "title":"c", "type":"object"},"annotations":{},"description":"b","name":"a","icons":[]}"#;
        assert_eq!(digest(one), digest(other));
        for (from, to) in [
            (r#""b""#, r#""B""#),
            (r#""name":"a""#, r#""name":"A""#),
            (r#""title":"c""#, r#""title":"C""#),
            (r#""annotations":{}"#, r#""annotations":{"readOnlyHint":true}"#),
            (r#","annotations":{}"#, ""),
            (r#""name":"a""#, r#""name":"a","title":"t""#),
            (r#""name":"a""#, r#""name":"a","outputSchema":{}"#),
        ] {
            assert_ne!(digest(one), digest(&one.replacen(from, to, 1)), "{from}");
        }
    }

    #[test]
    fn declaration_without_a_name_or_a_schema_is_refused() {
        for wrong in [r#"{"inputSchema":{}}"#, r#"{"name":"","inputSchema":{}}"#, r#"{"name":"a"}"#, r#"[]"#] {
            assert!(Declaration::read(wrong).is_err(), "{wrong}");
        }
    }
}
