//! The form of each option's value, and the contradictions that it must avoid.

use dispatch::Template;
use domain::{
    Json, Span,
    suspension::SuspensionState,
    tool::{Editable, Executor, Hints, OnExpiry, Recovery, Retention, Risk},
};
use serde_json::{Map, Value};

use super::{MAX_CONTEXT_KEY, MAX_CONTEXT_KEYS, MAX_PROMPT, MAX_TITLE, Reader, shown};
use crate::LoadRule;
use crate::json::{self, quoted};
use crate::rules::schema;

impl Reader<'_> {
    pub(super) fn title(&mut self, key: &'static str, value: &Value) {
        let fits = |text: &&str| (1..=MAX_TITLE).contains(&text.chars().count()) && !text.contains(char::is_control);
        match value.as_str().filter(fits) {
            Some(text) => self.options.title = Some(text.to_owned()),
            None => self.malformed(key, value, &format!("a string of 1 to {MAX_TITLE} characters on one line")),
        }
    }

    pub(super) fn schema(&mut self, key: &'static str, value: &Value) -> Option<Json> {
        if !value.is_object() && !value.is_boolean() {
            self.malformed(key, value, "a JSON Schema");
            return None;
        }
        let (what, text) = (format!("the option `{key}`"), self.texts.get(key)?.get());
        let usable =
            schema::is_of_size(&what, text, self.limits, self.findings) && schema::check(&what, value, self.findings);
        usable.then(|| Json::unchecked(text))
    }

    pub(super) fn span(&mut self, key: &'static str, value: &Value, max: u64) -> Option<Span> {
        let millis = value.as_u64().filter(|millis| (1..=max).contains(millis));
        if millis.is_none() {
            self.malformed(key, value, &format!("an integer from 1 to {max}"));
        }
        millis.map(Span::from_millis)
    }

    pub(super) fn on_expiry(&mut self, key: &'static str, value: &Value) {
        let human = self.declared.executor == Executor::Human;
        match value {
            Value::String(text) if text == "error" => {}
            Value::String(text) if human && matches!(text.as_str(), "deny" | "approve") => self.contradiction(
                format!("the option `{key}` is {}, and there is no approval that could expire", quoted(text)),
                "write \"error\", or {\"answer\": value} with the answer to assume",
            ),
            Value::String(text) if text == "deny" => self.options.on_expiry = OnExpiry::Deny,
            Value::String(text) if text == "approve" => self.approve_on_expiry(),
            Value::Object(members) if members.len() == 1 && members.contains_key("answer") => {
                if human {
                    self.options.on_expiry = OnExpiry::Answer(Json::unchecked(members["answer"].to_string()));
                } else {
                    self.contradiction(
                        format!("the option `{key}` answers a question, and the tool asks none"),
                        "write \"error\", \"deny\" or \"approve\"",
                    );
                }
            }
            value => self.malformed(key, value, "\"error\", \"deny\", \"approve\" or {\"answer\": value}"),
        }
    }

    /// A timeout may approve a call only if the operator allows it for this tool.
    fn approve_on_expiry(&mut self) {
        let name = self.declared.name.as_str();
        if self.settings.approve_on_expiry.iter().any(|allowed| allowed.as_str() == name) {
            self.options.on_expiry = OnExpiry::Approve;
        } else {
            self.findings.add(
                LoadRule::ApproveOnExpiry,
                "the option `on_expiry` approves calls that nobody answered, and the operator does not allow that",
                "write \"error\" or \"deny\", or name the tool under `approve_on_expiry` in the host's configuration",
            );
        }
    }

    /// Checks the answer of `on_expiry` against the response schema. It runs after all options are read, because their
    /// order is free and a schema that broke a rule must not be used.
    pub(super) fn check_answer(&mut self) {
        let (OnExpiry::Answer(answer), Some(response)) = (&self.options.on_expiry, &self.options.response) else {
            return;
        };
        let read = |json: &Json| json.value().ok().map(|value| json::for_schema(&value));
        let (Some(answer), Some(response)) = (read(answer), read(response)) else { return };
        if crate::schema::compile(&response)
            .is_ok_and(|schema| !schema.violations(&answer, &|| Some(response.clone())).is_empty())
        {
            let message = format!("the answer in `on_expiry` does not fit `response`: {}", shown(&answer));
            self.contradiction(message, "write an answer that a person could give");
        }
    }

    pub(super) fn prompt(&mut self, key: &'static str, value: &Value) {
        let fits = |text: &&str| (1..=MAX_PROMPT).contains(&text.len());
        let Some(text) = value.as_str().filter(fits) else {
            self.malformed(key, value, &format!("a template of 1 to {MAX_PROMPT} bytes"));
            return;
        };
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => {
                let message = format!("the option `{key}` is not a template: {}", escape::line(&error.to_string()));
                let remedy = "write `{name}` or `{/json/pointer}` for an argument, `{{` and `}}` for braces";
                self.findings.add(LoadRule::Prompt, message, remedy);
                return;
            }
        };
        let unlisted: Vec<_> = template.arguments().filter(|name| !self.has_argument(name)).collect();
        for name in unlisted {
            let message =
                format!("the option `{key}` names the argument {}, which `parameters` does not list", quoted(&name));
            self.findings.add(LoadRule::Prompt, message, "correct the name, or list it under `properties`");
        }
        self.options.prompt = Some(text.to_owned());
    }

    /// Whether the parameters list an argument. Unreadable parameters have a finding of their own, so they cause no
    /// second one here.
    fn has_argument(&self, name: &str) -> bool {
        let listed = |schema: &Value| schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
        self.parameters.is_none_or(listed)
    }

    pub(super) fn responses(&mut self, key: &'static str, value: &Value) {
        let expected =
            "an array of 1 to 16 distinct strings of 1 to 64 characters, none of them open, expired or withdrawn";
        // The decision becomes the state of an answered question, so it must differ from the other states.
        let reserved = |text: &String| SuspensionState::RESERVED.contains(&text.as_str());
        let sized = |text: &String| (1..=64).contains(&text.chars().count());
        let fits = |list: &Vec<String>| {
            distinct(list) && (1..=16).contains(&list.len()) && list.iter().all(sized) && !list.iter().any(reserved)
        };
        let Some(list) = texts(value).filter(fits) else {
            self.malformed(key, value, expected);
            return;
        };
        self.options.responses = Some(list.into());
    }

    pub(super) fn editable(&mut self, key: &'static str, value: &Value) {
        self.options.editable = match (value.as_str(), texts(value).filter(|list| distinct(list))) {
            (Some("none"), _) => Editable::Nothing,
            (Some("all"), _) => Editable::All,
            (None, Some(fields)) if !fields.is_empty() => {
                for field in fields.iter().filter(|field| !self.has_argument(field)).cloned().collect::<Vec<_>>() {
                    self.contradiction(
                        format!(
                            "the option `{key}` names the argument {}, which `parameters` does not list",
                            quoted(&field)
                        ),
                        "correct the name, or list it under `properties`",
                    );
                }
                Editable::Fields(fields.into())
            }
            _ => {
                self.malformed(key, value, "\"none\", \"all\" or a non-empty array of distinct argument names");
                return;
            }
        };
    }

    pub(super) fn risk(&mut self, key: &'static str, value: &Value) {
        self.options.risk = value.as_str().and_then(|text| text.parse::<Risk>().ok());
        if self.options.risk.is_none() {
            self.malformed(key, value, "\"low\", \"medium\", \"high\" or \"critical\"");
        }
    }

    /// An empty list is allowed: it hides the whole context.
    pub(super) fn context_keys(&mut self, key: &'static str, value: &Value) {
        let sized = |text: &String| (1..=MAX_CONTEXT_KEY).contains(&text.chars().count());
        let fits = |list: &Vec<String>| distinct(list) && list.len() <= MAX_CONTEXT_KEYS && list.iter().all(sized);
        match texts(value).filter(fits) {
            Some(keys) => self.options.context_keys = Some(keys.into()),
            None => self.malformed(
                key,
                value,
                &format!(
                    "an array of at most {MAX_CONTEXT_KEYS} distinct strings of 1 to {MAX_CONTEXT_KEY} characters"
                ),
            ),
        }
    }

    pub(super) fn durable(&mut self, key: &'static str, value: &Value) {
        match value {
            Value::Bool(durable) => self.options.durable = *durable,
            value => self.malformed(key, value, "true or false"),
        }
    }

    pub(super) fn recovery(&mut self, key: &'static str, value: &Value) {
        self.options.recovery = match value.as_str() {
            Some("retry") => Recovery::Retry,
            Some("ask") => Recovery::Ask,
            Some("fail") => Recovery::Fail,
            _ => return self.malformed(key, value, "\"retry\", \"ask\" or \"fail\""),
        };
    }

    pub(super) fn retention(&mut self, key: &'static str, value: &Value) {
        let allowed = ["max_age_turns", "max_count", "never_evict", "max_age_days"];
        let Some(members) = self.object(key, value, &allowed) else { return };
        let mut retention = Retention::default();
        for (name, value) in members {
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
            match (name.as_str(), count, value) {
                ("max_age_turns", Some(_), _) => retention.max_age_turns = count,
                ("max_count", Some(_), _) => retention.max_count = count,
                ("max_age_days", Some(_), _) => retention.max_age_days = count,
                ("never_evict", _, Value::Bool(true)) => retention.never_evict = true,
                ("never_evict", ..) => self.member(key, name, value, "`true`, or leave it out"),
                _ => self.member(key, name, value, &format!("an integer from 1 to {}", u32::MAX)),
            }
        }
        if members.is_empty() {
            let form = "{\"never_evict\": true}, or one or more of `max_age_turns`, `max_count` and `max_age_days`";
            self.malformed(key, value, form);
        }
        let has = |name| members.contains_key(name);
        if has("never_evict") && (has("max_age_turns") || has("max_count")) {
            self.contradiction(
                format!("the option `{key}` keeps results forever and bounds them as well"),
                "keep `never_evict` or the bounds, not both",
            );
        }
        self.options.retention = Some(retention);
    }

    pub(super) fn hints(&mut self, key: &'static str, value: &Value) {
        let known = ["read_only", "destructive", "idempotent", "open_world"];
        let Some(members) = self.object(key, value, &known) else { return };
        let mut hints = Hints::default();
        for (name, value) in members {
            let Some(hint) = value.as_bool() else {
                self.member(key, name, value, "true or false");
                continue;
            };
            match name.as_str() {
                "read_only" => hints.read_only = Some(hint),
                "destructive" => hints.destructive = Some(hint),
                "idempotent" => hints.idempotent = Some(hint),
                _ => hints.open_world = Some(hint),
            }
        }
        if hints.read_only == Some(true) && hints.destructive == Some(true) {
            self.contradiction(
                format!("the option `{key}` says that the tool changes nothing and that it destroys"),
                "let `read_only` or `destructive` be false",
            );
        }
        self.options.hints = hints;
    }

    /// The members of an option that is an object, if all of them are known.
    fn object<'v>(&mut self, key: &'static str, value: &'v Value, known: &[&str]) -> Option<&'v Map<String, Value>> {
        let Value::Object(members) = value else {
            self.malformed(key, value, "an object");
            return None;
        };
        let unknown: Vec<_> = members.keys().filter(|name| !known.contains(&name.as_str())).collect();
        for name in &unknown {
            self.unknown(&format!("member of the option `{key}` called"), name, known);
        }
        unknown.is_empty().then_some(members)
    }

    fn member(&mut self, key: &str, name: &str, value: &Value, expected: &str) {
        let message = format!("`{name}` in the option `{key}` is {}", shown(value));
        self.findings.add(LoadRule::OptionForm, message, format!("write {expected}"));
    }
}

/// An array of strings.
fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn distinct(list: &[String]) -> bool {
    list.iter().enumerate().all(|(index, text)| !list[..index].contains(text))
}
