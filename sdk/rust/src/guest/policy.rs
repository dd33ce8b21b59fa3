//! Conversions between the interface of policies and the SDK's own types.

use serde_json::{Map, Value};

use crate::Level;
use crate::bindings::policy::exports::toolgate::policy::judge;
use crate::bindings::policy::toolgate::policy::{host, policy_types as wit};
use crate::policy::{Answer, Executor, Policy, Question, Risk, cut};

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

impl From<Level> for host::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
        }
    }
}
