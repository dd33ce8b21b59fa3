//! A dynamic policy, not a plugin. It checks large amounts, production, and destructive tools.
//!
//! The operator sets the limits: `settings = { limit = 1000, hard_limit = 100000, production = "production" }`.

use toolgate_sdk::policy::{Answer, Question, Risk};
use toolgate_sdk::prelude::*;

toolgate_sdk::policy!(judge);

/// The operator's settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// A larger amount needs approval.
    limit: f64,
    /// A larger amount is denied.
    hard_limit: f64,
    /// The value of `environment` in the caller's context that means production.
    production: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { limit: 1_000.0, hard_limit: 100_000.0, production: "production".to_owned() }
    }
}

/// Parts of a tool's name that mark it as destructive.
const DESTRUCTIVE: [&str; 4] = ["drop", "delete", "purge", "truncate"];

/// The decision on a call: the strictest that follows from its amount, its environment and its tool's name.
pub fn judge(question: &Question) -> Answer {
    let settings: Settings = match Settings::deserialize(&question.settings) {
        Ok(settings) => settings,
        // With invalid settings, every call needs approval.
        Err(error) => return Answer::require_approval(format!("the settings of this policy mean nothing: {error}")),
    };
    let name = question.tool.to_lowercase();
    let destroys = DESTRUCTIVE.into_iter().find(|word| name.contains(word));
    let in_production = question.context["environment"] == settings.production.as_str();
    match amount(&question.arguments) {
        Amount::Of(amount) if amount > settings.hard_limit => {
            Answer::deny(format!("{amount} is more than {}, which nobody may approve", settings.hard_limit))
        }
        _ if in_production && destroys.is_some() => {
            Answer::require_approval("its name says that it destroys something, and this is production")
                .risk(Risk::Critical)
        }
        Amount::Of(amount) if amount > settings.limit => {
            Answer::require_approval(format!("{amount} is more than {}", settings.limit)).risk(Risk::High)
        }
        Amount::Unreadable => Answer::require_approval("it has an amount, which is not a number").risk(Risk::High),
        _ if in_production => Answer::require_approval("this is production").risk(Risk::High),
        _ => match destroys {
            Some(word) => Answer::require_approval(format!("its name says that it destroys something: `{word}`"))
                .risk(Risk::Medium),
            None => Answer::Proceed,
        },
    }
}

/// The amount in the arguments.
enum Amount {
    /// No amount.
    Absent,
    /// The absolute value, because a large refund is as risky as a large payment.
    Of(f64),
    /// A value that is not a number.
    Unreadable,
}

/// The larger of `amount` and `amount_cents`, so that one cannot hide the other.
fn amount(arguments: &Value) -> Amount {
    let mut found = Amount::Absent;
    for (key, unit) in [("amount", 1.0), ("amount_cents", 0.01)] {
        let Some(value) = arguments.get(key) else { continue };
        let Some(number) = value.as_f64() else { return Amount::Unreadable };
        let here = (number * unit).abs();
        found = match found {
            Amount::Of(other) if other >= here => Amount::Of(other),
            _ => Amount::Of(here),
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_to(tool: &str, arguments: Value, context: Value, settings: Value) -> String {
        let question = Question { context, settings, ..Question::new(tool, arguments) };
        match judge(&question) {
            Answer::Proceed => "proceed".to_owned(),
            Answer::RequireApproval { reason, risk } => format!("{risk:?}: {reason}"),
            Answer::Deny(reason) => format!("deny: {reason}"),
        }
    }

    #[test]
    fn the_strictest_of_amount_environment_and_name_counts() {
        let production = json!({"environment": "production"});
        for (tool, arguments, context, expected) in [
            ("pay", json!({"amount": 1000}), json!(null), "proceed"),
            ("pay", json!({"amount": 1000.5}), json!(null), "Some(High): 1000.5 is more than 1000"),
            ("pay", json!({"amount": -5000}), json!(null), "Some(High): 5000 is more than 1000"),
            ("pay", json!({"amount_cents": 100_000}), json!(null), "proceed"),
            ("pay", json!({"amount_cents": 200_000}), json!(null), "Some(High): 2000 is more than 1000"),
            ("pay", json!({"amount": 1, "amount_cents": 200_000}), json!(null), "Some(High): 2000 is more than 1000"),
            ("pay", json!({"amount": "5"}), json!(null), "Some(High): it has an amount, which is not a number"),
            (
                "pay",
                json!({"amount": 100_001}),
                production.clone(),
                "deny: 100001 is more than 100000, which nobody may approve",
            ),
            ("note", json!({}), json!({"environment": "staging"}), "proceed"),
            ("note", json!({}), json!("production"), "proceed"),
            ("note", json!({}), production.clone(), "Some(High): this is production"),
            ("Drop_table", json!({}), json!(null), "Some(Medium): its name says that it destroys something: `drop`"),
            (
                "file_delete",
                json!({}),
                production,
                "Some(Critical): its name says that it destroys something, and this is production",
            ),
        ] {
            assert_eq!(answer_to(tool, arguments.clone(), context, json!({})), expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn invalid_settings_ask_a_person() {
        let pay = |settings| answer_to("pay", json!({"amount": 60}), json!(null), settings);
        assert_eq!(pay(json!({"limit": 50})), "Some(High): 60 is more than 50");
        assert_eq!(pay(json!({"limit": 5, "hard_limit": 50})), "deny: 60 is more than 50, which nobody may approve");
        assert!(pay(json!({"limt": 50})).starts_with("None: the settings of this policy mean nothing"));
        assert!(pay(json!({"limit": "50"})).starts_with("None: the settings of this policy mean nothing"));
    }
}
