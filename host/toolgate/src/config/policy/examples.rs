//! Tests a rule with its examples when it is read. A rule that contradicts its examples is refused.

use domain::Json;
use domain::json::Value;
use policy::{Arguments, Moment, OperatorRule, Subject};

use super::forms::json;
use super::reading::Fail;
use super::{ExampleTable, PolicyTable};
use crate::config::ConfigError;

const HINT: &str = "correct the rule or the example; `toolgate policy explain` explains the rules for a call";

/// Tests a rule with every example.
pub(super) fn check(rule: &OperatorRule, table: &PolicyTable, fail: &Fail<'_>) -> Result<(), ConfigError> {
    for (key, expected, examples) in [("match", true, &table.matches), ("not_match", false, &table.not_matches)] {
        for (n, example) in examples.iter().enumerate() {
            let n = n.to_string();
            let wrong = |message: String, hint: &str| fail(&[key, n.as_str()], message, hint);
            let arguments = arguments(example).map_err(|message| wrong(message, "write a table, or JSON text"))?;
            let subject = Subject {
                tool: example.tool.as_deref(),
                plugin: example.plugin.as_deref(),
                caller: example.caller.as_deref(),
                moment: example.step.map(|step| Moment::Step(step.into())),
                arguments: Arguments::new(arguments),
            };
            let fit = rule.fit(&subject);
            if fit.fits != expected {
                let fits =
                    if fit.fits { "matches this call and should not" } else { "does not match this call and should" };
                return Err(wrong(format!("the rule {} {fits}: {}", rule.name, fit.why), HINT));
            }
        }
    }
    Ok(())
}

fn arguments(example: &ExampleTable) -> Result<Json, String> {
    let text = match &example.arguments {
        None => "{}".to_owned(),
        Some(toml::Value::String(text)) => text.clone(),
        Some(value @ toml::Value::Table(_)) => json(value)?,
        Some(other) => {
            return Err(format!("the arguments must be an object, and this has the type {}", other.type_str()));
        }
    };
    let arguments = Json::unchecked(text);
    let is_object = arguments.value().is_ok_and(|value| matches!(*value, Value::Object(_)));
    if is_object { Ok(arguments) } else { Err("the arguments are not a JSON object".to_owned()) }
}
