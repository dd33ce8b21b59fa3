//! From one `[[policy]]` table to a rule, with all that is wrong with it although each of its values could be read.

use dispatch::Exact;
use domain::{Escalate, Need, Rule, Span, Who};
use policy::{Condition, OperatorRule, Test};

use super::forms::json;
use super::{ConditionTable, EscalateTable, NeedTable, PolicyTable};
use crate::config::{ConfigError, Parsed};

/// The most characters of a rule's name.
const LONGEST_NAME: usize = 64;
/// The most characters of a reason.
const LONGEST_REASON: usize = 500;

/// Makes an error: the keys below the table, what is wrong, what to do.
pub(in crate::config) type Fail<'a> = dyn Fn(&[&str], String, &str) -> ConfigError + 'a;

/// The rule that a table means, under this name where it has none of its own.
pub(super) fn rule(table: &PolicyTable, default_name: String, fail: &Fail<'_>) -> Result<OperatorRule, ConfigError> {
    if let Some(name) = &table.name {
        check_name(name).map_err(|message| fail(&["name"], message, "choose another name"))?;
    }
    if let Some(reason) = &table.reason
        && (reason.trim().is_empty() || reason.chars().count() > LONGEST_REASON)
    {
        let message = format!("a reason has 1 to {LONGEST_REASON} characters");
        return Err(fail(&["reason"], message, "say in a sentence why"));
    }
    check_ungate(table, fail)?;
    if !table.needs.is_empty() && Rule::from(table.rule) == Rule::Deny {
        let message = "a rule that denies asks nobody, so nobody can be needed".to_owned();
        return Err(fail(&["needs"], message, "remove `needs`, or write `rule = \"ask\"`"));
    }
    let condition = |(n, table): (usize, &ConditionTable)| {
        let n = n.to_string();
        condition(table, &|keys, message, hint| fail(&[&["arguments", n.as_str()], keys].concat(), message, hint))
    };
    let need = |(n, table): (usize, &NeedTable)| {
        let n = n.to_string();
        need(table, &|keys, message, hint| fail(&[&["needs", n.as_str()], keys].concat(), message, hint))
    };
    Ok(OperatorRule {
        name: table.name.clone().unwrap_or(default_name).into(),
        place: None,
        tools: table.tools.0.clone(),
        plugin: table.plugin.as_ref().map(|pattern| pattern.0.clone()),
        caller: table.caller.as_ref().map(|pattern| pattern.0.clone()),
        conditions: table.arguments.iter().enumerate().map(condition).collect::<Result<_, _>>()?,
        rule: table.rule.into(),
        ungate: table.ungate,
        reason: table.reason.as_deref().map(Into::into),
        risk: table.risk.map(Into::into),
        needs: table.needs.iter().enumerate().map(need).collect::<Result<_, _>>()?,
    })
}

pub(in crate::config) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./:[]".contains(c);
    if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(allowed) {
        return Ok(());
    }
    let quoted = text::quoted(name, LONGEST_NAME);
    Err(format!(
        "{quoted} is not a rule's name: expected 1 to {LONGEST_NAME} of the characters a-z A-Z 0-9 _ - . / : [ ]"
    ))
}

/// A gate that an author put there is lifted for one tool whose name the operator wrote out, and for no other by accident.
fn check_ungate(table: &PolicyTable, fail: &Fail<'_>) -> Result<(), ConfigError> {
    let error = |message: &str, hint: &str| Err(fail(&["ungate"], message.to_owned(), hint));
    if !table.ungate {
        return Ok(());
    }
    if Rule::from(table.rule) != Rule::Allow {
        return error("only a rule that allows can lift a tool's own approval", "write `rule = \"allow\"`");
    }
    if !table.tools.0.is_exact() {
        return error(
            "a tool's own approval is lifted for one tool, named in full",
            "write `tools = \"NAME\"`, without `*` and `?`",
        );
    }
    if !table.plugin.as_ref().is_some_and(|plugin| plugin.0.is_exact()) {
        return error(
            "a tool's own approval is lifted for a tool of one plugin, named in full",
            "write `plugin = \"NAME\"`, so that another plugin's tool of that name stays gated",
        );
    }
    if !table.needs.is_empty() {
        return error("without an approval, nobody can be needed for one", "remove `ungate` or `needs`");
    }
    Ok(())
}

fn condition(table: &ConditionTable, fail: &Fail<'_>) -> Result<Condition, ConfigError> {
    let mut tests = Vec::new();
    if let Some(value) = &table.equals {
        let text = json(value).map_err(|message| fail(&["equals"], message, "compare with something else"))?;
        let too_deep = || fail(&["equals"], "the value is nested too deeply".to_owned(), "compare with a part of it");
        tests.push(Test::Equals(Exact::parse(&text).ok_or_else(too_deep)?));
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
            return Err(fail(&["min"], message, "exchange them"));
        }
        tests.push(Test::Range { min, max });
    }
    if table.absent {
        tests.push(Test::Absent);
    }
    match <[Test; 1]>::try_from(tests) {
        Ok([test]) => Ok(Condition { pointer: table.pointer.0.clone(), test, not: table.not }),
        Err(tests) => {
            let what = if tests.is_empty() { "nothing says what must hold there" } else { "a condition has one test" };
            let hint = "write exactly one of `equals`, `prefix`, `glob`, `min` and `max`, `absent = true`";
            Err(fail(&[], what.to_owned(), hint))
        }
    }
}

pub(in crate::config) fn need(table: &NeedTable, fail: &Fail<'_>) -> Result<Need, ConfigError> {
    let who = distinct(&table.who);
    let quorum = table.quorum.map_or(1, std::num::NonZeroU32::get);
    let only_principals = !who.is_empty() && who.iter().all(|who| matches!(who, Who::Principal(_)));
    // Those that it is widened to are no part of what has to be possible from the start.
    if only_principals && table.escalate.is_none() && who.len() < quorum as usize {
        let message = format!("{quorum} must agree, and only {} may", who.len());
        return Err(fail(&["quorum"], message, "name more of them, or lower the quorum"));
    }
    let escalate = table.escalate.as_ref().map(|EscalateTable { after_ms, to }| {
        if to.is_empty() {
            let message = "it goes on to nobody".to_owned();
            return Err(fail(&["escalate", "to"], message, "write `to = [\"role:admin\"]`"));
        }
        Ok(Escalate { after: Span::from_millis(after_ms.get()), to: distinct(to).into() })
    });
    Ok(Need { who: who.into(), quorum, escalate: escalate.transpose()? })
}

/// Each of them once: one who is named twice has one vote.
fn distinct(who: &[Parsed<Who>]) -> Vec<Who> {
    who.iter().fold(Vec::new(), |mut distinct, Parsed(who)| {
        if !distinct.contains(who) {
            distinct.push(who.clone());
        }
        distinct
    })
}
