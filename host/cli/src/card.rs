//! Turns and suspensions as text. A person who decides sees the whole call, and untrusted text is escaped.

mod arguments;
mod steps;

pub(crate) use arguments::{approved, of_edit, submitted, voted};
pub(crate) use steps::step;

use api::{
    Call, Closed, Editable, EditableWord, LogLine, Need, Nested, Parent, Receipt, RequestInDoubt, RunLog, Suspension,
    Turn, TurnState, Via, You,
};
use domain::{call::Level, outcome::Status, principal::Role, suspension::SuspensionKind};
use serde::Serialize;

use crate::args::word;
use crate::report::token_with;
use crate::terminal::{Style, Terminal};

/// The lines of a log that a card shows. `toolgate logs` shows all that are kept.
const LOG_LINES: usize = 20;

/// A suspension with everything that an answer needs.
pub(crate) fn suspension(item: &Suspension, terminal: &Terminal) -> String {
    let is_open = item.closed.is_none();
    let (tool, plugin) = (escape::line(&item.tool), item.plugin.as_deref().map(escape::line).unwrap_or_default());
    let outside = if item.sandboxed == Some(false) { ", outside the sandbox" } else { "" };
    let mut card = format!(
        "{}  {}  {} ({plugin}{outside})\n",
        terminal.style(Style::Strong, &escape::line(&item.suspension)),
        terminal.style(if is_open { Style::Open } else { Style::Faint }, &item.kind.to_string()),
        terminal.style(Style::Strong, &tool),
    );
    if let Some(prompt) = &item.prompt {
        if arguments::is_edited(item) {
            row(&mut card, "prompt", "about the arguments as submitted:");
        }
        card.push_str(&escape::block(prompt, "  | "));
    }
    in_a_call(&mut card, item);
    if let Some(attempt) = item.in_doubt_attempt {
        card.push_str(&format!(
            "  The host was killed while attempt {attempt} ran. The attempt may have had effects. An approval runs it again.\n"
        ));
    }
    for RequestInDoubt { entry, request, at } in &item.requests_in_doubt {
        row(&mut card, "in doubt", &format!("{entry}: {}, begun at {}", escape::line(request), escape::line(at)));
    }
    arguments::rows(&mut card, item);
    let takes_several = item.needs.len() > 1 || item.needs.iter().any(|need| need.quorum > 1);
    if item.kind.0 == SuspensionKind::Approval && takes_several {
        row(&mut card, "has", &approvals(&item.needs));
    }
    arguments::defaults(&mut card, item);
    if let Some(context) = &item.context {
        row(&mut card, "context", &escape::json_line(context.as_str()));
    }
    if let Some(signal) = &item.signal {
        row(&mut card, "signal", &escape::line(signal));
    }
    if let Some(metadata) = &item.metadata {
        row(&mut card, "metadata", &escape::json_line(metadata.as_str()));
    }
    if let Some(schema) = &item.response_schema {
        row(&mut card, "answer fits", &escape::json_line(schema.as_str()));
    }
    if is_open && item.editable != Editable::Word(EditableWord::None) {
        row(&mut card, "editable", &escape::json_line(&json(&item.editable)));
    }
    row(&mut card, "asked by", &format!("{}, call {}", escape::line(&item.caller), escape::line(&item.call)));
    if let Some(parent) = &item.parent {
        row(&mut card, "through", &through(parent));
    }
    row(&mut card, "turn", &format!("{} of {}", escape::line(&item.turn), escape::line(&item.conversation)));
    row(&mut card, "digest", &escape::line(&item.digest));
    if is_open {
        // A word is shown without its quotes.
        let then = escape::json_line(json(&item.on_expiry).trim_matches('"'));
        row(&mut card, "expires", &format!("{}, then {then}", escape::line(&item.expires_at)));
        answering(&mut card, item, terminal);
    }
    if let Some(closed) = &item.closed {
        row(&mut card, "ended", &ended(closed));
        if let Some(data) = &closed.data {
            row(&mut card, "answer", &escape::json_line(data.as_str()));
        }
        if let Some(comment) = &closed.comment {
            card.push_str(&escape::block(comment, "  | "));
        }
    }
    card
}

/// Adds what concerns a step of a call that has begun: who wrote the text, and the steps before it.
fn in_a_call(card: &mut String, item: &Suspension) {
    if let Some(step) = item.step {
        let is_external = item.kind.0 == SuspensionKind::External;
        let (text, end) = if is_external { ("text", "result") } else { ("question", "answer") };
        card.push_str(&format!(
            "  Step {step} of a call that has begun. The plugin wrote the {text}. The host cannot know whether later effects \
             match the {end}.\n",
        ));
    }
    for earlier in &item.earlier {
        row(card, "before", &step(earlier));
    }
}

/// How a suspension ended: the decision, by whom and when.
pub(crate) fn ended(closed: &Closed) -> String {
    let via = closed.via.as_ref().map_or_else(String::new, |via| format!(" via {via}"));
    let by = names(&closed.approvers, &closed.by);
    escape::line(&format!("{} by {by}{via} at {}", closed.state, closed.at)).into_owned()
}

/// The names of those who did something together, or of the one who did it.
fn names(several: &[String], one: &str) -> String {
    match several {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => one.to_owned(),
    }
}

/// Adds the channels that the needs demand. With several needs, each line names its people.
fn channels(card: &mut String, needs: &[Need]) {
    for Need { who, via, .. } in needs.iter().filter(|need| !need.via.is_empty()) {
        let people = match (needs.len(), who.as_slice()) {
            (1, _) => String::new(),
            (_, []) => " (any approver)".to_owned(),
            (_, who) => format!(" ({})", who.join(" or ")),
        };
        card.push_str(&format!("  must be answered through: {}{}\n", names_of(via), escape::line(&people)));
    }
}

/// The names of channels.
pub(crate) fn names_of(channels: &[Via]) -> String {
    channels.iter().map(|channel| channel.0.as_str()).collect::<Vec<_>>().join(", ")
}

/// How many of the needed approvals there are.
pub(crate) fn approvals(needs: &[Need]) -> String {
    let each = needs.iter().map(|Need { who, quorum, votes, .. }| {
        let from = if who.is_empty() { String::new() } else { format!(" from {}", who.join(" or ")) };
        format!("{votes} of {quorum} {}{from}", if *quorum == 1 { "approval" } else { "approvals" })
    });
    escape::line(&each.collect::<Vec<_>>().join(", ")).into_owned()
}

/// Adds who answers and how. A suspension in a turn does not say whether this principal may answer.
fn answering(card: &mut String, item: &Suspension, terminal: &Terminal) {
    let role = match item.kind.0 {
        SuspensionKind::ClientExec => Role::Client,
        SuspensionKind::External => Role::Caller,
        SuspensionKind::Approval
        | SuspensionKind::Elicitation
        | SuspensionKind::Timer
        | SuspensionKind::Nested
        | SuspensionKind::RateLimit => Role::Approver,
    }
    .as_str();
    channels(card, &item.needs);
    match &item.you {
        Some(You { may_answer: false, why_not, role, .. }) => {
            let why_not = why_not.as_deref().unwrap_or("you may not answer this");
            row(card, "not by you", &escape::line(why_not));
            if let Some(role) = role {
                row(card, "answered by", &token_with(*role));
            }
        }
        you => {
            let (name, by) = match you {
                Some(_) => ("answer with", String::new()),
                None => ("answered by", format!("a principal with the role {role}: ")),
            };
            for command in commands(item) {
                row(card, name, &format!("{by}{}", terminal.style(Style::Good, &command)));
            }
        }
    }
}

/// The commands that answer a suspension, to paste.
fn commands(item: &Suspension) -> Vec<String> {
    let id = escape::line(&item.suspension);
    match item.kind.0 {
        SuspensionKind::Approval if !item.requests_in_doubt.is_empty() => {
            let each = item.requests_in_doubt.iter().map(|request| format!("\"{}\":\"DECISION\"", request.entry));
            let decisions = each.collect::<Vec<_>>().join(",");
            vec![
                format!("toolgate approve {id} --arguments '{{{decisions}}}'"),
                format!("toolgate deny {id} --comment 'why not'"),
            ]
        }
        SuspensionKind::Approval => {
            vec![format!("toolgate approve {id}"), format!("toolgate deny {id} --comment 'why not'")]
        }
        SuspensionKind::ClientExec => {
            vec![format!("toolgate answer {id} 'RESULT AS JSON'"), format!("toolgate answer {id} --error 'why not'")]
        }
        // Only the first choice certainly takes data. Other choices, such as declining, may need none.
        SuspensionKind::Elicitation if item.allowed.len() > 1 => item
            .allowed
            .iter()
            .enumerate()
            .map(|(position, choice)| {
                let data = if position == 0 && item.response_schema.is_some() { " 'ANSWER AS JSON'" } else { "" };
                format!("toolgate answer {id}{data} --decision {}", word(choice.0.as_str()))
            })
            .collect(),
        SuspensionKind::Elicitation => vec![format!("toolgate answer {id} 'ANSWER AS JSON'")],
        SuspensionKind::External => {
            let by_name = item.signal.as_ref().map(|signal| {
                let (conversation, signal) = (escape::line(&item.conversation), escape::line(signal));
                format!("toolgate signal {conversation} {signal} 'RESULT AS JSON'")
            });
            std::iter::once(format!("toolgate answer {id} 'RESULT AS JSON'")).chain(by_name).collect()
        }
        // Nobody answers.
        SuspensionKind::Timer | SuspensionKind::Nested | SuspensionKind::RateLimit => Vec::new(),
    }
}

/// A turn with the state of each call and its open suspensions.
pub(crate) fn turn(turn: &Turn, terminal: &Terminal) -> String {
    let style = if turn.state == TurnState::Open { Style::Open } else { Style::Good };
    let mut card = format!(
        "{}  {}  in {}{}\n",
        terminal.style(Style::Strong, &escape::line(&turn.turn)),
        terminal.style(style, &turn.state.to_string()),
        escape::line(&turn.conversation),
        if turn.replayed { "  (submitted before; this is the recorded turn)" } else { "" },
    );
    if let Some(parent) = &turn.parent {
        row(&mut card, "through", &through(parent));
    }
    for each in &turn.calls {
        card.push_str(&call(each, terminal));
    }
    if !turn.pending.is_empty() {
        card.push_str("\nWaiting:\n");
        for item in &turn.pending {
            card.push_str(&suspension(item, terminal));
        }
    }
    card
}

fn call(call: &Call, terminal: &Terminal) -> String {
    let style = match call.status.0 {
        Status::Resolved => Style::Good,
        Status::Errored => Style::Bad,
        Status::Running | Status::Awaiting => Style::Open,
    };
    let state = call.outcome.map_or_else(|| call.status.to_string(), |outcome| outcome.to_string());
    let by =
        call.approver.as_ref().map_or_else(String::new, |by| format!(", approved by {}", names(&call.approvers, by)));
    let trust =
        if call.trusted == Some(false) { ", with a result from outside; the host has not checked it" } else { "" };
    let mut card = format!(
        "  {}  {}  {}{}{trust}\n",
        escape::line(&call.id),
        terminal.style(Style::Strong, &escape::line(&call.tool)),
        terminal.style(style, &state),
        escape::line(&by),
    );
    match &call.submitted {
        None => card.push_str(&format!("      {}\n", escape::json_line(call.arguments.as_str()))),
        Some(submitted) => card.push_str(&format!(
            "      approved  {}\n      submitted {}\n",
            escape::json_line(call.arguments.as_str()),
            escape::json_line(submitted.as_str())
        )),
    }
    if let Some(content) = &call.content {
        card.push_str(&format!("   => {}\n", escape::json_line(&json(content))));
    }
    for nested in &call.nested {
        card.push_str(&branch(nested));
    }
    if let Some(receipt) = &call.receipt {
        card.push_str(&format!("      {}\n", terminal.style(Style::Faint, &usage(receipt))));
    }
    for run in call.log.iter().flatten() {
        card.push_str(&log(run, terminal));
    }
    card
}

/// The tool that submitted a nested turn. It chose the tools and the arguments.
fn through(parent: &Parent) -> String {
    let Parent { conversation, turn, call, plugin, tool, .. } = parent;
    let text = format!("{tool} of the plugin {plugin}, call {call} of {turn} in {conversation}");
    escape::line(&text).into_owned()
}

/// A nested turn of a call, with the command that shows it.
fn branch(nested: &Nested) -> String {
    let Nested { conversation, turn, tools, open } = nested;
    let state = if *open { "waits for" } else { "called" };
    let text = format!("{state} {} in {turn}: toolgate show {turn} --conversation '{conversation}'", tools.join(", "));
    format!("      └ {}\n", escape::line(&text))
}

/// The last lines of a run's log.
fn log(run: &RunLog, terminal: &Terminal) -> String {
    let shown = &run.lines[run.lines.len().saturating_sub(LOG_LINES)..];
    let left_out = run.left_out + (run.lines.len() - shown.len()) as u64;
    let more = if left_out > 0 { format!(", without {left_out} earlier lines") } else { String::new() };
    let mut card = format!("      {}\n", terminal.style(Style::Faint, &format!("log of run {}{more}", run.run)));
    for line in shown {
        card.push_str(&format!("      | {}\n", log_line(line, terminal)));
    }
    card
}

/// The usage of a call, on one line.
fn usage(receipt: &Receipt) -> String {
    let time = match receipt.time_us {
        micros @ ..1_000 => format!("{micros} µs"),
        micros @ ..10_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        micros => format!("{} ms", micros / 1_000),
    };
    let calls = if receipt.host_calls == 1 { "call" } else { "calls" };
    let journal = receipt.journal.as_ref().map_or_else(String::new, |journal| {
        let entries = if journal.entries == 1 { "entry" } else { "entries" };
        format!(", journal of {} {entries} and {}", journal.entries, size(journal.bytes))
    });
    format!(
        "{time}, {}, {} host {calls}, {} in, {} out{journal}",
        size(receipt.peak_memory_bytes),
        receipt.host_calls,
        size(receipt.bytes_in),
        size(receipt.bytes_out),
    )
}

/// A size with its unit, rounded down.
pub(crate) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        ..1_024 => return format!("{bytes} B"),
        1_024..1_048_576 => (1_024, "KiB"),
        _ => (1_048_576, "MiB"),
    };
    match (bytes / unit, bytes % unit * 10 / unit) {
        (whole, tenths) if whole < 10 && tenths > 0 => format!("{whole}.{tenths} {name}"),
        (whole, _) => format!("{whole} {name}"),
    }
}

fn row(card: &mut String, name: &str, value: &str) {
    card.push_str(&format!("  {name:<11} {value}\n"));
}

/// A value as the host wrote it.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A line of a log for people: its time, its level, and the guest's words, escaped.
pub(crate) fn log_line(line: &LogLine, terminal: &Terminal) -> String {
    let style = match line.level.0 {
        Level::Debug => Style::Faint,
        Level::Info => Style::Strong,
        Level::Warn => Style::Open,
        Level::Error => Style::Bad,
    };
    let level = terminal.style(style, &format!("{:<5}", line.level.to_string()));
    format!("{}  {level}  {}", terminal.style(Style::Faint, &escape::line(&line.at)), escape::line(&line.message))
}

#[cfg(test)]
mod tests;
