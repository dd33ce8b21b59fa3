//! The arguments of a suspension as a person sees them: what was submitted, what was approved, and what an approver changed.

use std::collections::{BTreeMap, BTreeSet};

use api::{Closed, Suspension, Verbatim};
use domain::suspension::{Decision, SuspensionEnd, SuspensionKind};
use serde_json::value::RawValue;

use super::row;

/// Adds the rows for the arguments, and for the votes of an approval that is still open.
pub(super) fn rows(card: &mut String, item: &Suspension) {
    let submitted = item.arguments.as_str();
    if item.kind.0 != SuspensionKind::Approval {
        return row(card, "arguments", &escape::json_line(submitted));
    }
    match &item.closed {
        Some(Closed { state, arguments, .. }) if state.0 == SuspensionEnd::Decided(Decision::Approve) => {
            let approved = arguments.as_ref().map_or(submitted, Verbatim::as_str);
            card.push_str(&self::approved(submitted, approved));
        }
        Some(_) => row(card, "submitted", &escape::json_line(submitted)),
        None => {
            let is_edited = item.votes.iter().any(|vote| vote.arguments.is_some());
            let unedited = if item.step.is_some() { "value" } else { "arguments" };
            row(card, if is_edited { "submitted" } else { unedited }, &escape::json_line(submitted));
        }
    }
    for vote in &item.votes {
        let via = vote.via.as_ref().map_or_else(String::new, |via| format!(" via {via}"));
        let by = escape::line(&format!("{}{via}", vote.by)).into_owned();
        match &vote.arguments {
            None => row(card, "vote", &format!("{by} approved the arguments as submitted")),
            Some(edited) => {
                row(card, "vote", &format!("{by} approved {}", escape::json_line(edited.as_str())));
                changes(card, submitted, edited.as_str());
            }
        }
    }
}

/// Whether an approver has approved other arguments than the submitted ones. The prompt is not about those.
pub(super) fn is_edited(item: &Suspension) -> bool {
    let closed = item.closed.as_ref().filter(|closed| closed.state.0 == SuspensionEnd::Decided(Decision::Approve));
    let edits = closed.and_then(|closed| closed.arguments.as_ref()).into_iter();
    let mut edits = edits.chain(item.votes.iter().filter_map(|vote| vote.arguments.as_ref()));
    item.kind.0 == SuspensionKind::Approval
        && edits.any(|edited| compact(edited.as_str()) != compact(item.arguments.as_str()))
}

/// The approved arguments, the submitted ones, and how they differ.
pub(crate) fn approved(submitted: &str, approved: &str) -> String {
    let mut card = String::new();
    row(&mut card, "approved", &escape::json_line(approved));
    if compact(submitted) == compact(approved) {
        row(&mut card, "submitted", "the same");
    } else {
        row(&mut card, "submitted", &escape::json_line(submitted));
        changes(&mut card, submitted, approved);
    }
    card
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
