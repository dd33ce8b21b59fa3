//! The options of a tool: which keys exist, and to which tools they apply.
//!
//! The table is the one in the comment of `options` in `wit/v0.1/plugin.wit`.

use std::collections::BTreeMap;

use domain::CatalogLimits;
use domain::tool::{Approval, Executor, Recovery, ToolOptions};
use sandbox::Declared;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::finding::Findings;
use crate::json::{self, quoted};
use crate::{LoadRule, RegistrySettings};

mod forms;

/// The maximum number of characters of a title.
pub const MAX_TITLE: usize = 128;

/// The maximum number of bytes of a prompt's template.
pub const MAX_PROMPT: usize = 4 << 10;

/// The maximum number of context members that a tool may name.
const MAX_CONTEXT_KEYS: usize = 64;

/// The maximum number of characters of a context member's name.
const MAX_CONTEXT_KEY: usize = 128;

/// The largest declared timeout of a run: a day.
const MAX_TIMEOUT: u64 = 86_400_000;

/// The largest declared expiry of a wait: 365 days.
const MAX_EXPIRES: u64 = 31_536_000_000;

/// The tools to which a key applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Server,
    Human,
    Gated,
    HumanOrGated,
    Waits,
    NotHuman,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Title,
    Result,
    Timeout,
    Expires,
    OnExpiry,
    Prompt,
    Responses,
    Response,
    Editable,
    Risk,
    ContextKeys,
    Durable,
    Recovery,
    Retention,
    Hints,
}

const KEYS: [(Key, &str, Scope); 15] = [
    (Key::Title, "title", Scope::All),
    (Key::Result, "result", Scope::NotHuman),
    (Key::Timeout, "timeout_ms", Scope::Server),
    (Key::Expires, "expires_ms", Scope::Waits),
    (Key::OnExpiry, "on_expiry", Scope::HumanOrGated),
    (Key::Prompt, "prompt", Scope::HumanOrGated),
    (Key::Responses, "responses", Scope::Human),
    (Key::Response, "response", Scope::Human),
    (Key::Editable, "editable", Scope::Gated),
    (Key::Risk, "risk", Scope::All),
    (Key::ContextKeys, "context_keys", Scope::Waits),
    (Key::Durable, "durable", Scope::Server),
    (Key::Recovery, "recovery", Scope::Server),
    (Key::Retention, "retention", Scope::All),
    (Key::Hints, "hints", Scope::All),
];

impl Scope {
    fn holds(self, executor: Executor, approval: Approval, durable: bool) -> bool {
        let gated = approval == Approval::RequiresApproval;
        match self {
            Self::All => true,
            Self::Server => executor == Executor::Server,
            Self::Human => executor == Executor::Human,
            Self::Gated => gated,
            Self::HumanOrGated => gated || executor == Executor::Human,
            Self::Waits => gated || durable || matches!(executor, Executor::Human | Executor::Client),
            Self::NotHuman => executor != Executor::Human,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::All => "every tool",
            Self::Server => "server tools",
            Self::Human => "human tools",
            Self::Gated => "tools that require approval",
            Self::HumanOrGated => "human tools and tools that require approval",
            Self::Waits => "human, client and durable tools and tools that require approval",
            Self::NotHuman => "server, client and provider tools",
        }
    }
}

/// Reads the options of one tool. An invalid option becomes a finding and counts as absent.
pub(crate) fn read(
    declared: &Declared,
    parameters: Option<&Value>,
    settings: &RegistrySettings,
    limits: &CatalogLimits,
    findings: &mut Findings,
) -> ToolOptions {
    let text = declared.options.as_str();
    let Some(members) = members(text, limits, findings) else { return ToolOptions::default() };
    // The schemas in the options are passed on verbatim, so their texts are cut from the source.
    let texts: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let mut reader =
        Reader { declared, parameters, settings, limits, texts, findings, options: ToolOptions::default() };
    let durable = members.get("durable") == Some(&Value::Bool(true));
    for (name, value) in &members {
        let Some((key, name, scope)) = KEYS.iter().find(|(_, known, _)| known == name) else {
            reader.unknown("option", name, KEYS.map(|(_, known, _)| known).as_slice());
            continue;
        };
        if scope.holds(declared.executor, declared.approval, durable) {
            reader.read(*key, name, value);
        } else {
            let gated = if declared.approval == Approval::Auto { "" } else { " that requires approval" };
            let executor = declared.executor.as_str();
            let message = format!("the option `{name}` does not apply to a {executor} tool{gated}");
            reader.findings.add(
                LoadRule::OptionScope,
                message,
                format!("remove it; it applies only to {}", scope.as_str()),
            );
        }
    }
    reader.check_answer();
    if durable && !members.contains_key("recovery") {
        // Nobody has said that a request which may have been carried out can be sent again.
        reader.options.recovery = Recovery::Fail;
    }
    reader.options
}

/// The members of the options object, if it is one.
fn members(text: &str, limits: &CatalogLimits, findings: &mut Findings) -> Option<serde_json::Map<String, Value>> {
    const REMEDY: &str = "write a JSON object; `{}` says nothing";
    let (size, max) = (text.len(), limits.options);
    if size > max {
        let message = format!("the options have {size} bytes; the maximum is {max} (limit `catalog.options_bytes`)");
        findings.add(LoadRule::OptionsForm, message, "shorten the options");
        return None;
    }
    match json::read(text) {
        Ok((Value::Object(members), twice)) => {
            for pointer in twice {
                let message = format!("the options have the member {} twice", quoted(&pointer));
                findings.add(LoadRule::OptionsForm, message, "remove one of the two");
            }
            Some(members)
        }
        Ok(_) => {
            findings.add(LoadRule::OptionsForm, "the options are not a JSON object", REMEDY);
            None
        }
        Err(error) => {
            findings.add(LoadRule::OptionsForm, format!("the options are not JSON: {error}"), REMEDY);
            None
        }
    }
}

/// The state while the options of one tool are read.
struct Reader<'a> {
    declared: &'a Declared,
    parameters: Option<&'a Value>,
    settings: &'a RegistrySettings,
    limits: &'a CatalogLimits,
    texts: BTreeMap<String, &'a RawValue>,
    findings: &'a mut Findings,
    options: ToolOptions,
}

impl Reader<'_> {
    fn read(&mut self, key: Key, name: &'static str, value: &Value) {
        match key {
            Key::Title => self.title(name, value),
            Key::Result => self.options.result = self.schema(name, value),
            Key::Timeout => self.options.timeout = self.span(name, value, MAX_TIMEOUT),
            Key::Expires => self.options.expires = self.span(name, value, MAX_EXPIRES),
            Key::OnExpiry => self.on_expiry(name, value),
            Key::Prompt => self.prompt(name, value),
            Key::Responses => self.responses(name, value),
            Key::Response => self.options.response = self.schema(name, value),
            Key::Editable => self.editable(name, value),
            Key::Risk => self.risk(name, value),
            Key::ContextKeys => self.context_keys(name, value),
            Key::Durable => self.durable(name, value),
            Key::Recovery => self.recovery(name, value),
            Key::Retention => self.retention(name, value),
            Key::Hints => self.hints(name, value),
        }
    }

    fn unknown(&mut self, what: &str, key: &str, known: &[&str]) {
        let message = format!("there is no {what} {}", quoted(key));
        let remedy = match crate::catalog::nearest(key, known.iter().copied()) {
            Some(near) => format!("remove it, or write `{near}` if that is what you mean"),
            None => format!("remove it; there are {}", known.join(", ")),
        };
        self.findings.add(LoadRule::OptionUnknown, message, remedy);
    }

    /// Adds a finding about a value of the wrong form.
    fn malformed(&mut self, key: &str, value: &Value, expected: &str) {
        let message = format!("the option `{key}` is {}", shown(value));
        self.findings.add(LoadRule::OptionForm, message, format!("write {expected}"));
    }

    /// Adds a finding about a well-formed value that contradicts something.
    fn contradiction(&mut self, message: impl Into<String>, remedy: impl Into<String>) {
        self.findings.add(LoadRule::OptionContradiction, message, remedy);
    }
}

/// A value in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Object(_) => "an object of another form".to_owned(),
        Value::Array(_) => "an array of another form".to_owned(),
        value => value.to_string(),
    }
}
