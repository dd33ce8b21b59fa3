//! Bindings to the interface of policies, and conversions to the SDK's own types.

use serde_json::{Map, Value};

use self::bindings::exports::toolgate::policy::judge;
use self::bindings::toolgate::policy::{host, policy_types as wit};
use crate::Level;
use crate::policy::{Answer, Executor, Policy, Question, Risk, cut};

/// The world of policies.
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/policy/v0.1",
        world: "toolgate:policy/policy",
        pub_export_macro: true,
        export_macro_name: "export_policy",
        default_bindings_module: "toolgate_sdk::guest::policy::bindings",
    });
}

impl<P: Policy> judge::Guest for P {
    fn judge(question: wit::Question) -> wit::Answer {
        let answer = match read(question) {
            Ok(question) => P::judge(&question),
            Err(why) => Answer::require_approval(why),
        };
        match answer {
            Answer::Proceed => wit::Answer::Proceed,
            Answer::RequireApproval { reason, risk } => wit::Answer::RequireApproval(wit::Requirement {
                reason: cut(reason),
                risk: risk.map(wit::Risk::from),
                options: "{}".to_owned(),
            }),
            Answer::Deny(reason) => wit::Answer::Deny(cut(reason)),
        }
    }
}

/// Reads the call. The error states why it is unreadable; for example, a number can be too large.
fn read(question: wit::Question) -> Result<Question, String> {
    let json = |what: &str, text: &str| -> Result<Value, String> {
        serde_json::from_str(text).map_err(|error| format!("the policy cannot read the call's {what}: {error}"))
    };
    let facts: Map<String, Value> = serde_json::from_str(&question.facts).map_err(|error| error.to_string())?;
    Ok(Question {
        arguments: json("arguments", &question.arguments)?,
        context: question.context.as_deref().map_or(Ok(Value::Null), |text| json("context", text))?,
        executor: match question.executor {
            wit::Executor::Server => Executor::Server,
            wit::Executor::Human => Executor::Human,
            wit::Executor::Client => Executor::Client,
        },
        requires_approval: question.approval == wit::Approval::RequiresApproval,
        settings: facts.get("settings").cloned().unwrap_or_default(),
        facts,
        tool: question.tool,
        plugin: question.plugin,
        caller: question.caller,
        conversation: question.conversation,
    })
}

impl From<Risk> for wit::Risk {
    fn from(risk: Risk) -> Self {
        match risk {
            Risk::Low => Self::Low,
            Risk::Medium => Self::Medium,
            Risk::High => Self::High,
            Risk::Critical => Self::Critical,
        }
    }
}

/// Writes a line to the host's log.
pub fn log(level: Level, message: &str) {
    let level = match level {
        Level::Debug => host::Level::Debug,
        Level::Info => host::Level::Info,
        Level::Warn => host::Level::Warn,
        Level::Error => host::Level::Error,
    };
    host::log(level, message);
}
