//! The arguments of a suspension as a person sees them: what was submitted, what was approved, and what an approver changed.

use std::collections::{BTreeMap, BTreeSet};

use api::{Closed, Suspension, Verbatim};
use domain::suspension::{Decision, SuspensionEnd, SuspensionKind};
use serde_json::value::RawValue;

use super::row;

/// Adds the rows for the arguments, and for the votes of an approval that is still open.
pub(super) fn rows(card: &mut String, item: &Suspension) {
    let asked = item.arguments.as_str();
    match &item.closed {
        Some(closed) if is_approved(item, closed) => {
            let approved = closed.arguments.as_ref().map_or(asked, Verbatim::as_str);
            card.push_str(&self::approved(submitted(item), approved));
        }
        _ if item.submitted.is_some() => {
            row(card, "arguments", &escape::json_line(asked));
            submitted_row(card, submitted(item), asked);
        }
        Some(_) if is_approval(item) => row(card, "submitted", &escape::json_line(asked)),
        _ => {
            let is_edited = is_approval(item) && item.votes.iter().any(|vote| vote.arguments.is_some());
            let is_value = is_approval(item) && item.step.is_some();
            let is_decided = !item.requests_in_doubt.is_empty();
            let name = if is_decided {
                "decisions"
            } else if is_edited {
                "submitted"
            } else if is_value {
                "value"
            } else {
                "arguments"
            };
            row(card, name, &escape::json_line(asked));
        }
    }
    if is_approval(item) {
        votes(card, item);
    }
}

/// Adds the schema's defaults: those for the approved edit if there is one, and otherwise those for the arguments that are
/// asked about.
pub(super) fn defaults(card: &mut String, item: &Suspension) {
    let closed = item.closed.as_ref().filter(|closed| is_approved(item, closed) && closed.arguments.is_some());
    if let Some(closed) = closed {
        return defaults_of(card, "the approved arguments", closed.defaults.as_ref(), closed.defaults_unknown);
    }
    if let Some(defaults) = &item.defaults {
        let about = if is_edited(item) { "for the arguments as submitted: " } else { "" };
        row(card, "defaults", &format!("{about}{}", escape::json_line(defaults.as_str())));
    }
}

/// Adds the schema's defaults for what an edit leaves out, if there are any.
fn defaults_of(card: &mut String, edit: &str, defaults: Option<&Verbatim>, unknown: Option<bool>) {
    if unknown == Some(true) {
        row(card, "defaults", &format!("unknown for {edit}: the component of the call is no longer loaded"));
    } else if let Some(defaults) = defaults {
        row(card, "defaults", &format!("for {edit}: {}", escape::json_line(defaults.as_str())));
    }
}

/// The row for the defaults that apply to the edit of the rows before.
pub(crate) fn of_edit(defaults: Option<&Verbatim>) -> String {
    let mut card = String::new();
    defaults_of(&mut card, "this edit", defaults, None);
    card
}

fn votes(card: &mut String, item: &Suspension) {
    let asked = item.arguments.as_str();
    let unedited = if item.submitted.is_some() { "these arguments" } else { "the arguments as submitted" };
    for vote in &item.votes {
        let via = vote.via.as_ref().map_or_else(String::new, |via| format!(" via {via}"));
        let by = escape::line(&format!("{}{via}", vote.by)).into_owned();
        match &vote.arguments {
            None => row(card, "vote", &format!("{by} approved {unedited}")),
            Some(edited) => {
                row(card, "vote", &format!("{by} approved {}", escape::json_line(edited.as_str())));
                changes(card, asked, edited.as_str());
                defaults_of(card, "this edit", vote.defaults.as_ref(), vote.defaults_unknown);
            }
        }
    }
}

fn is_approval(item: &Suspension) -> bool {
    item.kind.0 == SuspensionKind::Approval
}

/// Whether it is an approval that somebody gave. A question can have a choice named `approve`.
fn is_approved(item: &Suspension, closed: &Closed) -> bool {
    is_approval(item) && closed.state.0 == SuspensionEnd::Decided(Decision::Approve)
}

/// The arguments of the call as its caller submitted them.
pub(crate) fn submitted(item: &Suspension) -> &str {
    item.submitted.as_ref().unwrap_or(&item.arguments).as_str()
}

/// Whether an approver has approved other arguments than those that this suspension asks about. The prompt is not about
/// those.
pub(super) fn is_edited(item: &Suspension) -> bool {
    let closed = item.closed.as_ref().filter(|closed| is_approved(item, closed));
    let edits = closed.and_then(|closed| closed.arguments.as_ref()).into_iter();
    let mut edits = edits.chain(item.votes.iter().filter_map(|vote| vote.arguments.as_ref()));
    is_approval(item) && edits.any(|edited| compact(edited.as_str()) != compact(item.arguments.as_str()))
}

/// The approved arguments, the submitted ones, and how they differ.
pub(crate) fn approved(submitted: &str, approved: &str) -> String {
    compared("approved", submitted, approved)
}

/// The same for the arguments of a vote, while other approvals are missing.
pub(crate) fn voted(submitted: &str, approved: &str) -> String {
    compared("vote", submitted, approved)
}

fn compared(name: &str, submitted: &str, approved: &str) -> String {
    let mut card = String::new();
    row(&mut card, name, &escape::json_line(approved));
    submitted_row(&mut card, submitted, approved);
    card
}

/// Adds the submitted arguments, and how those of the row before differ from them.
fn submitted_row(card: &mut String, submitted: &str, now: &str) {
    if compact(submitted) == compact(now) {
        return row(card, "submitted", "the same");
    }
    row(card, "submitted", &escape::json_line(submitted));
    changes(card, submitted, now);
}

/// Adds one row for each top-level member that differs.
fn changes(card: &mut String, before: &str, after: &str) {
    let (before, after) = (members(before), members(after));
    for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let shown = escape::line(name);
        match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) if compact(before.get()) == compact(after.get()) => {}
            (Some(before), Some(after)) => {
                let (before, after) = (escape::json_line(before.get()), escape::json_line(after.get()));
                row(card, "changed", &format!("{shown}: {before} -> {after}"));
            }
            (Some(before), None) => row(card, "removed", &format!("{shown}: {}", escape::json_line(before.get()))),
            (None, Some(after)) => row(card, "added", &format!("{shown}: {}", escape::json_line(after.get()))),
            (None, None) => {}
        }
    }
}

/// The members of a JSON object; empty for any other value.
fn members(json: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(json).unwrap_or_default()
}

/// A JSON text without the white space between its tokens. Numbers keep their digits, so that no difference is lost.
fn compact(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let kept = |c: &char| {
        let is_space = !in_string && c.is_ascii_whitespace();
        in_string ^= *c == '"' && !is_escaped;
        is_escaped = in_string && *c == '\\' && !is_escaped;
        !is_space
    };
    json.chars().filter(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_text_keeps_strings_and_digits() {
        for (text, expected) in [
            ("{ \"a\" : 1.0 ,\n \"b c\": [ ] }", "{\"a\":1.0,\"b c\":[]}"),
            (r#"[ "a \" b" , "\\" , " " ]"#, r#"["a \" b","\\"," "]"#),
        ] {
            assert_eq!(compact(text), expected);
        }
    }
}
