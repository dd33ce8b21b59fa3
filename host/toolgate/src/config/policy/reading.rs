//! Makes a rule from a `[[policy]]` table, and checks the table for contradictions.

use domain::json::Value;
use domain::{
    Span,
    approvers::{Escalate, Need, Who},
    gate::RuleEffect,
    principal::Channel,
    step::StepKind,
};
use policy::{Condition, OperatorRule, Test};

use super::forms::json;
use super::{ConditionTable, EscalateTable, NeedTable, PolicyTable};
use crate::config::{ConfigError, Parsed};

/// The maximal length of a rule's name, in characters.
const MAX_NAME: usize = 64;
/// The maximal length of a reason, in characters.
const MAX_REASON: usize = 500;

/// Makes an error from the keys in the table, the message and the hint.
pub(in crate::config) type Fail<'a> = dyn Fn(&[&str], String, &str) -> ConfigError + 'a;

/// The rule of a table. Without its own name, it gets the default name.
pub(super) fn rule(table: &PolicyTable, default_name: String, fail: &Fail<'_>) -> Result<OperatorRule, ConfigError> {
    if let Some(name) = &table.name {
        check_name(name).map_err(|message| fail(&["name"], message, "choose another name"))?;
    }
    if let Some(reason) = &table.reason
        && (reason.trim().is_empty() || reason.chars().count() > MAX_REASON)
    {
        let message = format!("a reason must have 1 to {MAX_REASON} characters");
        return Err(fail(&["reason"], message, "write the reason in one sentence"));
    }
    check_ungate(table, fail)?;
    check_step(table, fail)?;
    if !table.needs.is_empty() && RuleEffect::from(table.rule) == RuleEffect::Deny {
        let message = "a rule that denies needs no approval, so it cannot have `needs`".to_owned();
        return Err(fail(&["needs"], message, "remove `needs`, or write `rule = \"ask\"`"));
    }
    let condition = |(n, table): (usize, &ConditionTable)| {
        let n = n.to_string();
        condition(table, &|keys, message, hint| fail(&[&["arguments", n.as_str()], keys].concat(), message, hint))
    };
    Ok(OperatorRule {
        name: table.name.clone().unwrap_or(default_name).into(),
        place: None,
        tools: table.tools.0.clone(),
        plugin: table.plugin.as_ref().map(|pattern| pattern.0.0.clone()),
        caller: table.caller.as_ref().map(|pattern| pattern.0.clone()),
        step: table.step.map(Into::into),
        conditions: table.arguments.iter().enumerate().map(condition).collect::<Result<_, _>>()?,
        rule: table.rule.into(),
        ungate: table.ungate,
        reason: table.reason.as_deref().map(Into::into),
        risk: table.risk.map(Into::into),
        needs: needs(&table.needs, is_of_approvals(table), fail)?,
    })
}

pub(in crate::config) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./:[]".contains(c);
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(allowed) {
        return Ok(());
    }
    let quoted = escape::quoted(name, MAX_NAME);
    Err(format!(
        "{quoted} is not a name for a rule: expected 1 to {MAX_NAME} of the characters a-z A-Z 0-9 _ - . / : [ ]"
    ))
}

/// `ungate` applies to one tool with its full name, so that no other tool loses its approval by accident.
fn check_ungate(table: &PolicyTable, fail: &Fail<'_>) -> Result<(), ConfigError> {
    let error = |message: &str, hint: &str| Err(fail(&["ungate"], message.to_owned(), hint));
    if !table.ungate {
        return Ok(());
    }
    if RuleEffect::from(table.rule) != RuleEffect::Allow {
        return error("only a rule that allows can remove a tool's own approval", "write `rule = \"allow\"`");
    }
    if !table.tools.0.is_exact() {
        return error("`ungate` needs the full name of one tool", "write `tools = \"NAME\"`, without `*` and `?`");
    }
    if !table.plugin.as_ref().is_some_and(|plugin| plugin.0.0.is_exact()) {
        return error(
            "`ungate` needs the full name of one plugin",
            "write `plugin = \"NAME\"`, so that a tool of another plugin keeps its approval",
        );
    }
    if !table.needs.is_empty() {
        return error(
            "a rule with `ungate` requires no approval, so it cannot have `needs`",
            "remove `ungate` or `needs`",
        );
    }
    Ok(())
}

/// A step is asked about anyway, and only an `approve` has approvers.
fn check_step(table: &PolicyTable, fail: &Fail<'_>) -> Result<(), ConfigError> {
    let Some(step) = table.step.map(StepKind::from) else { return Ok(()) };
    let error = |key: &str, message: String, hint: &str| Err(fail(&[key], message, hint));
    if table.ungate {
        return error("ungate", "a step has no approval of its own that a rule can remove".into(), "remove `ungate`");
    }
    if RuleEffect::from(table.rule) == RuleEffect::Ask {
        let message = "a step waits for its own answer, so no rule asks for it".to_owned();
        return error("rule", message, "write `rule = \"deny\"`, or `rule = \"allow\"` with `needs`");
    }
    if !table.needs.is_empty() && step != StepKind::Approve {
        let message = format!("nobody approves a step of the kind `{}`", step.as_str());
        return error("needs", message, "remove `needs`, or write `step = \"approve\"`");
    }
    Ok(())
}

fn condition(table: &ConditionTable, fail: &Fail<'_>) -> Result<Condition, ConfigError> {
    let mut tests = Vec::new();
    if let Some(value) = &table.equals {
        let text = json(value).map_err(|message| fail(&["equals"], message, "compare with something else"))?;
        let too_deep = |_| fail(&["equals"], "the value is nested too deeply".to_owned(), "compare with a part of it");
        tests.push(Test::Equals(Value::parse(&text).map_err(too_deep)?));
    }
    if let Some(prefix) = &table.prefix {
        tests.push(Test::Prefix(prefix.as_str().into()));
    }
    tests.extend(table.glob.as_ref().map(|glob| Test::Glob(glob.0.clone())));
    if table.min.is_some() || table.max.is_some() {
        let [min, max] = [&table.min, &table.max].map(|bound| bound.as_ref().map(|bound| bound.0.clone()));
        if let (Some(min), Some(max)) = (&min, &max)
            && min > max
        {
            let message = format!("no number is at least {min} and at most {max}");
            return Err(fail(&["min"], message, "exchange the two"));
        }
        tests.push(Test::Range { min, max });
    }
    if table.absent {
        tests.push(Test::Absent);
    }
    match <[Test; 1]>::try_from(tests) {
        Ok([test]) => Ok(Condition { pointer: table.pointer.0.clone(), test, not: table.not }),
        Err(tests) => {
            let what = if tests.is_empty() { "the condition has no test" } else { "the condition has several tests" };
            let hint = "write exactly one of `equals`, `prefix`, `glob`, `min` and `max`, `absent = true`";
            Err(fail(&[], what.to_owned(), hint))
        }
    }
}

/// Whether its needs are those of approvals only. The needs of a rule that allows can also be those of questions.
fn is_of_approvals(table: &PolicyTable) -> bool {
    RuleEffect::from(table.rule) == RuleEffect::Ask || table.step.map(StepKind::from) == Some(StepKind::Approve)
}

/// The needs of a table. `of_approvals`: they are never those of questions.
pub(in crate::config) fn needs(
    tables: &[NeedTable],
    of_approvals: bool,
    fail: &Fail<'_>,
) -> Result<Vec<Need>, ConfigError> {
    let read = |(n, table): (usize, &NeedTable)| {
        let n = n.to_string();
        let fail: &Fail<'_> = &|keys, message, hint| fail(&[&["needs", n.as_str()], keys].concat(), message, hint);
        let need = need(table, fail)?;
        if of_approvals && need.via.iter().eq([Channel::McpForm]) {
            let message = "no approval comes through `mcp-form`, so nobody could approve".to_owned();
            return Err(fail(&["via"], message, "name another channel, such as `console`"));
        }
        Ok(need)
    };
    tables.iter().enumerate().map(read).collect()
}

fn need(table: &NeedTable, fail: &Fail<'_>) -> Result<Need, ConfigError> {
    let who = distinct(&table.who);
    let quorum = table.quorum.map_or(1, std::num::NonZeroU32::get);
    let only_principals = !who.is_empty() && who.iter().all(|who| matches!(who, Who::Principal(_)));
    // Approvers of an escalation do not count here: the approval must be possible from the start.
    if only_principals && table.escalate.is_none() && who.len() < quorum as usize {
        let message = format!("{quorum} principals must approve, and only {} are named", who.len());
        return Err(fail(&["quorum"], message, "name more principals, or lower the quorum"));
    }
    let escalate = table.escalate.as_ref().map(|EscalateTable { after_ms, to }| {
        if to.is_empty() {
            let message = "the escalation names nobody".to_owned();
            return Err(fail(&["escalate", "to"], message, "write `to = [\"role:admin\"]`"));
        }
        Ok(Escalate { after: Span::from_millis(after_ms.get()), to: distinct(to).into() })
    });
    if table.via.as_ref().is_some_and(Vec::is_empty) {
        return Err(fail(
            &["via"],
            "`via` names no channel".to_owned(),
            "name a channel, or remove `via` to count all",
        ));
    }
    let via = table.via.iter().flatten().copied().map(Channel::from).collect();
    Ok(Need { who: who.into(), quorum, escalate: escalate.transpose()?, via })
}

/// Removes duplicates: a principal has one vote.
fn distinct(who: &[Parsed<Who>]) -> Vec<Who> {
    who.iter().fold(Vec::new(), |mut distinct, Parsed(who)| {
        if !distinct.contains(who) {
            distinct.push(who.clone());
        }
        distinct
    })
}
