//! Prompts for people: a plugin's template, filled in with the arguments of a call.
//!
//! `{name}` is a top-level argument, `{/a/0}` a JSON Pointer (RFC 6901) into the arguments, `{{` and `}}` are braces. A
//! string is inserted as it is, any other value as compact JSON. An absent argument is inserted as the schema's default
//! with the mark ` (default)`, or as `null`. Inserted text is never read as a template again. The result is
//! untrusted text: escape it before showing it.

use domain::json::{Defaults, Value};

/// The maximum length of a prompt, in bytes. A short template can name a large argument many times.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A JSON Pointer; a bare name is a pointer of one step.
    Value(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `{` without its `}`, or a `}` without its `{`.
    #[error("a brace at byte {0} has no partner; write {{{{ or }}}} for a brace in the text")]
    Unbalanced(usize),
    /// Something in braces that is neither an argument's name nor a pointer.
    #[error("{{{0}}} is neither an argument's name nor a JSON Pointer")]
    BadPlaceholder(String),
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// [`TemplateError`] with the place or the words that are wrong.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let offset = text.len() - rest.len() + at;
            plain.push_str(&rest[..at]);
            let after = &rest[at..];
            if let Some(tail) = after.strip_prefix("{{") {
                plain.push('{');
                rest = tail;
            } else if let Some(tail) = after.strip_prefix("}}") {
                plain.push('}');
                rest = tail;
            } else if after.starts_with('}') {
                return Err(TemplateError::Unbalanced(offset));
            } else {
                let close = after.find('}').ok_or(TemplateError::Unbalanced(offset))?;
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::Value(pointer(&after[1..close])?));
                rest = &after[close + 1..];
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(Self(parts))
    }

    /// The top-level arguments that the template names.
    pub fn arguments(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(pointer) => {
                let first = pointer[1..].split('/').next().unwrap_or_default();
                Some(first.replace("~1", "/").replace("~0", "~"))
            }
        })
    }

    /// The text for these arguments; `None` if it would be longer than [`MAX_BYTES`]. It is never cut: a person who
    /// sees a part would answer for the whole.
    #[must_use]
    pub(crate) fn render(&self, arguments: &Value, defaults: &Defaults<'_>) -> Option<String> {
        let fill = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Value(pointer) => match (arguments.pointer(pointer), defaults.get(pointer)) {
                (Some(value), _) => plain(value),
                (None, Some(default)) => format!("{} (default)", plain(default)),
                (None, None) => "null".to_owned(),
            },
        };
        self.0.iter().try_fold(String::new(), |mut text, part| {
            text.push_str(&fill(part));
            (text.len() <= MAX_BYTES).then_some(text)
        })
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        value => value.to_json(),
    }
}

fn pointer(placeholder: &str) -> Result<String, TemplateError> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !placeholder.is_empty() && placeholder.chars().all(name) {
        return Ok(format!("/{placeholder}"));
    }
    if placeholder.starts_with('/') && !placeholder.contains('{') {
        return Ok(placeholder.to_owned());
    }
    Err(TemplateError::BadPlaceholder(placeholder.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str) -> String {
        let arguments =
            r#"{"to": "{amount}", "amount": 5, "lines": [{"sku": "a"}], "a/b": true, "big": 12345678901234567890.123}"#;
        let schema = Value::parse(
            r#"{"properties": {"memo": {"default": "none"}, "note": {"default": null}, "amount": {"default": 9}}}"#,
        );
        match (Template::parse(template), Value::parse(arguments), schema) {
            (Ok(template), Ok(arguments), Ok(schema)) => {
                let defaults = Defaults::of(&schema, &arguments, &|_, _| false).unwrap_or_default();
                template.render(&arguments, &defaults).unwrap_or_default()
            }
            (refused, ..) => format!("{:?}", refused.map_err(|error| error.to_string())),
        }
    }

    #[test]
    fn templates() {
        for (template, expected) in [
            ("Pay {amount} cents?", "Pay 5 cents?"),
            ("to {to}", "to {amount}"),
            ("{/lines/0/sku} {/lines}", r#"a [{"sku":"a"}]"#),
            ("{/a~1b} {absent}", "true null"),
            ("{{{amount}}}", "{5}"),
            ("{amount}, {memo}, {/memo}", "5, none (default), none (default)"),
            ("{note}", "null (default)"),
            ("", ""),
            ("{big}", "12345678901234567890.123"),
            ("a } b", r#"Err("a brace at byte 2 has no partner; write {{ or }} for a brace in the text")"#),
            ("a {b", r#"Err("a brace at byte 2 has no partner; write {{ or }} for a brace in the text")"#),
            ("{a b}", r#"Err("{a b} is neither an argument's name nor a JSON Pointer")"#),
            ("{}", r#"Err("{} is neither an argument's name nor a JSON Pointer")"#),
        ] {
            assert_eq!(render(template), expected, "{template}");
        }
    }

    #[test]
    fn a_template_that_multiplies_an_argument_is_stopped() {
        let arguments = Value::parse(&format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20))).expect("JSON");
        let template = Template::parse(&"{a}".repeat(1_300));
        assert_eq!(template.map(|template| template.render(&arguments, &Defaults::default())), Ok(None));
    }

    #[test]
    fn a_template_says_which_arguments_it_needs() {
        let template = Template::parse("{to} {/a~1b/0} {{no}}").map(|t| t.arguments().collect::<Vec<_>>());
        assert_eq!(template, Ok(vec!["to".to_owned(), "a/b".to_owned()]));
    }
}
