//! Rows that need calls. First whether a tool answers at all; only then what it makes of the unusual.

use std::cmp::Reverse;
use std::sync::Arc;

use dispatch::ports::Checks;
use domain::{FailureCode, Json, Outcome, Tool};
use kit::examples::{Example, Expected, Failure};
use sandbox::{Spent, Update};
use serde_json::Value;

use crate::report::{Problem, Report};
use crate::world::{Asked, Home, Ran, World};
use crate::{Requirement, loading, samples, variations};

/// A tool that is called.
struct Called<'a> {
    tool: &'a Tool,
    checks: Arc<dyn Checks>,
    /// Arguments of which it answered, with a result before with a failure, and the richest first.
    samples: Vec<Value>,
}

impl Called<'_> {
    fn name(&self) -> &str {
        self.tool.name.as_str()
    }

    fn asked(&self) -> Asked<'_> {
        Asked { name: self.name(), time: self.tool.options.timeout }
    }

    fn problem(&self, what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { tool: Some(self.name().to_owned()), what: what.into(), remedy: remedy.into() }
    }

    fn fits(&self, arguments: &Value) -> bool {
        self.checks.arguments(&json(arguments)).is_empty()
    }
}

fn json(value: &Value) -> Json {
    Json::new(value.to_string())
}

/// Judges every server tool.
pub(crate) async fn judge(world: &World<'_>, tools: &[Tool], examples: &[Example], report: &mut Report) {
    let run: Vec<&Tool> = tools.iter().filter(|tool| loading::is_run(tool)).collect();
    let stranger = |example: &&Example| !run.iter().any(|tool| tool.name.as_str() == example.tool);
    for stranger in examples.iter().filter(stranger) {
        let what = format!("{}: it is no server tool of the component", stranger.title());
        let remedy = "correct the name in the examples, or take them out".to_owned();
        report.problem(Requirement::Examples, Problem { tool: None, what, remedy });
    }
    if run.is_empty() {
        report.skip_rest("it runs no tool itself");
        return;
    }
    report.skip_rest("no tool answered, or none takes such arguments");
    if !run.iter().any(|tool| tool.streaming) {
        report.skip(Requirement::Stop, "no tool streams");
    }
    let (mut least, mut taken): (Option<Spent>, _) = (None, (0, 0));
    for tool in run {
        let mut called = Called { tool, checks: registry::checks(tool), samples: Vec::new() };
        if let Some(spent) = answers(world, &mut called, examples, report).await {
            least = least.into_iter().chain([spent]).min_by_key(|spent| spent.peak_memory);
        }
        if called.samples.is_empty() {
            continue;
        }
        unusual(world, &called, report).await;
        broken(world, &called, &mut taken, report).await;
        twice(world, &called, report).await;
        stopped(world, &called, report).await;
    }
    if let Some(spent) = least {
        let start = unknown(world, report).await;
        loading::cost(report.toolchain, &world.limits, start.unwrap_or(spent).time, spent.peak_memory, report);
    }
}

/// Whether it answers to its examples, or to the smallest arguments that fit. What it cost at least.
async fn answers(
    world: &World<'_>,
    called: &mut Called<'_>,
    examples: &[Example],
    report: &mut Report,
) -> Option<Spent> {
    let (mut least, mut samples) = (None, Vec::new());
    let mut ran_any = false;
    let home = world.home();
    let name = called.tool.name.as_str();
    for example in examples.iter().filter(|example| example.tool == name) {
        let arguments = Value::Object(example.arguments.clone());
        report.looked(Requirement::Examples);
        if let Some(violation) = called.checks.arguments(&json(&arguments)).first() {
            if example.expected == Expected::Failure(Failure::InvalidArguments) {
                // A host says so before the plugin sees them.
                continue;
            }
            let what = format!("{}: its arguments do not fit the schema: {violation}", example.title());
            report.problem(Requirement::Examples, called.problem(what, "correct the example, or the schema"));
            continue;
        }
        ran_any = true;
        let ran = world.run(&home, called.asked(), &json(&arguments), 1).await;
        if trapped(called, &ran, &arguments).is_none() {
            compare(called, example, &ran, report);
        }
        if let Some(spent) = settle(called, &ran, &arguments, report) {
            least = Some(spent);
            samples.push((matches!(ran.outcome, Outcome::Ok { .. }), arguments));
        }
    }
    // What is made of a sample shows little where the tool fails before it looks at it.
    samples.sort_by_key(|(has_result, sample)| (!has_result, Reverse(variations::size(sample))));
    called.samples.extend(samples.into_iter().map(|(_, sample)| sample));
    if !ran_any {
        let Some(sample) = samples::of(&value(&called.tool.parameters)).filter(|sample| called.fits(sample)) else {
            let what = "the kit found no arguments for it";
            report.problem(Requirement::Answers, called.problem(what, "give an example of a call in examples.json"));
            return None;
        };
        let ran = world.run(&home, called.asked(), &json(&sample), 1).await;
        least = settle(called, &ran, &sample, report);
        called.samples.extend(least.map(|_| sample));
    }
    least
}

fn value(json: &Json) -> Value {
    serde_json::from_str(json.as_str()).unwrap_or_default()
}

/// What a run that ought to end well showed of the rows that every run can break. `None` where it did not answer.
fn settle(called: &Called<'_>, ran: &Ran, arguments: &Value, report: &mut Report) -> Option<Spent> {
    report.looked(Requirement::Answers);
    if let Some(problem) = trapped(called, ran, arguments) {
        report.problem(Requirement::Answers, problem);
        return None;
    }
    results(called, ran, report);
    failures(called, ran, report);
    progress(called, &ran.updates, report);
    ran.spent
}

/// An end that is neither a result nor a failure of the tool's own.
fn trapped(called: &Called<'_>, ran: &Ran, arguments: &Value) -> Option<Problem> {
    let Outcome::Failed(failure) = &ran.outcome else { return None };
    let remedy = match failure.code {
        FailureCode::InvalidArguments
        | FailureCode::ToolFailed
        | FailureCode::ToolUnavailable
        | FailureCode::InvalidResult => {
            return None;
        }
        FailureCode::Trapped => "catch what went wrong and return a failure, with a sentence for the model",
        FailureCode::OutOfTime => "end sooner, or say how long it takes with the option `timeout_ms`",
        FailureCode::OutOfMemory | FailureCode::LimitExceeded => {
            "bound what it takes by the schema (`maxLength`, `maxItems`, `maximum`)"
        }
        _ => "this is the host's fault: run the kit again, and report it if it stays",
    };
    let last = ran.lines.last().map(|line| format!("; it last logged {line:?}")).unwrap_or_default();
    let what = format!("with {} it ended {}: {}{last}", excerpt(arguments), failure.code.as_str(), failure.message);
    Some(called.problem(what, remedy))
}

fn results(called: &Called<'_>, ran: &Ran, report: &mut Report) {
    let remedy = "return what the schema of the option `result` says, or correct that";
    match &ran.outcome {
        Outcome::Ok { value, .. } => {
            report.looked(Requirement::Results);
            for violation in called.checks.result(value) {
                report.problem(Requirement::Results, called.problem(format!("its result: {violation}"), remedy));
            }
        }
        Outcome::Failed(failure) if failure.code == FailureCode::InvalidResult => {
            let remedy = "return one JSON text";
            report.problem(Requirement::Results, called.problem(failure.message.clone(), remedy));
        }
        _ => {}
    }
}

fn failures(called: &Called<'_>, ran: &Ran, report: &mut Report) {
    if let Outcome::Failed(failure) = &ran.outcome {
        report.looked(Requirement::Failures);
        if failure.message.trim().is_empty() {
            let remedy = "say what was wrong and what would be right: a model reads it and tries again";
            report.problem(Requirement::Failures, called.problem("it failed without a word", remedy));
        }
    }
}

fn progress(called: &Called<'_>, updates: &[Update], report: &mut Report) {
    let remedy = match called.tool.streaming {
        true => "report fractions that grow from 0 to 1, each with a line for people",
        false => "declare the tool `streaming`, or report no progress: the host drops it",
    };
    let mut problem = |what: String| report.problem(Requirement::Progress, called.problem(what, remedy));
    if !called.tool.streaming {
        if !updates.is_empty() {
            problem(format!("it reports progress ({} updates) and is not declared to", updates.len()));
        }
        return;
    }
    if updates.iter().any(|update| update.message.trim().is_empty()) {
        problem("an update has no words".into());
    }
    let fractions: Vec<f64> = updates.iter().filter_map(|update| update.fraction).collect();
    if let Some(back) = fractions.windows(2).find(|pair| pair[1] < pair[0]) {
        problem(format!("its fractions go back, from {} to {}", back[0], back[1]));
    }
    report.looked(Requirement::Progress);
}

/// What trapped has its row already.
fn compare(called: &Called<'_>, example: &Example, ran: &Ran, report: &mut Report) {
    let (found, error) = match &ran.outcome {
        Outcome::Ok { value, .. } => (Some(self::value(value)), None),
        other => (None, other.error()),
    };
    let came_to = match (&found, &error) {
        (Some(found), _) => Ok(found),
        (None, error) => Err(error.as_ref().map_or(("", ""), |(code, message)| (*code, message.as_str()))),
    };
    if let Some(difference) = example.difference(came_to) {
        let what = format!("{}: {difference}", example.title());
        report.problem(Requirement::Examples, called.problem(what, "correct the tool, or the example"));
    }
}

/// Arguments that fit and that programs get wrong.
async fn unusual(world: &World<'_>, called: &Called<'_>, report: &mut Report) {
    let mut rows = vec![
        (Requirement::Unicode, varied(called, &|value| variations::text(value, variations::CHARACTERS))),
        (Requirement::Empty, varied(called, &variations::empty)),
        (Requirement::Largest, largest(world, called)),
    ];
    let numbers = variations::numbers();
    let each = numbers.iter().flat_map(|number| varied(called, &|value| variations::number(value, number)));
    rows.push((Requirement::Numbers, each.collect()));
    for (requirement, all) in rows {
        for arguments in all {
            report.looked(requirement);
            let ran = world.run(&world.home(), called.asked(), &json(&arguments), 1).await;
            if let Some(problem) = trapped(called, &ran, &arguments) {
                report.problem(requirement, problem);
            } else if let (Outcome::Failed(failure), FailureCode::InvalidResult) = (&ran.outcome, code_of(&ran.outcome))
            {
                report.problem(requirement, called.problem(failure.message.clone(), "return one JSON text"));
            }
        }
    }
}

fn code_of(outcome: &Outcome) -> FailureCode {
    match outcome {
        Outcome::Failed(failure) => failure.code,
        _ => FailureCode::ToolFailed,
    }
}

/// The variations of the best sample that fit the schema.
fn varied(called: &Called<'_>, change: &dyn Fn(&Value) -> Option<Value>) -> Vec<Value> {
    let sample = called.samples.first().into_iter();
    sample.flat_map(|sample| variations::changed(sample, change)).filter(|arguments| called.fits(arguments)).collect()
}

/// Places of texts that are tried with a long one: to find how long takes many looks at it.
const MOST_LONG: usize = 8;

/// Replaces all texts, and then only the first, by the longest text that both the schema and the host accept.
fn largest(world: &World<'_>, called: &Called<'_>) -> Vec<Value> {
    let Some(sample) = called.samples.first() else { return Vec::new() };
    let with = |length: usize, place: usize| {
        let mut text = "lorem ipsum ".repeat(length / 12 + 1);
        text.truncate(length);
        variations::changed_at(sample, &|value| variations::text(value, &text), place)
    };
    let fits = |made: &Value| json(made).size() <= world.limits.arguments && called.fits(made);
    let (all, most) = (variations::places(sample, &|value| variations::text(value, "")), world.limits.arguments);
    // In the first place of several, all of them are long.
    let most = |place: usize| if place == 0 && all > 1 { most / (all - 1) } else { most };
    (0..all.min(MOST_LONG)).filter_map(|place| longest(most(place), &|length| with(length, place), &fits)).collect()
}

/// What is made of the greatest length, of at most so much, that fits. A schema that takes a length takes the shorter ones,
/// as a rule; where it does not, some length is found or none.
fn longest(most: usize, made: &dyn Fn(usize) -> Value, fits: &dyn Fn(&Value) -> bool) -> Option<Value> {
    let (mut beyond, mut length) = (most, most);
    while !fits(&made(length)) {
        beyond = length;
        length /= 4;
        if length == 0 {
            return None;
        }
    }
    while length + 1 < beyond {
        let middle = length.midpoint(beyond);
        if fits(&made(middle)) {
            length = middle;
        } else {
            beyond = middle;
        }
    }
    Some(made(length))
}

/// Arguments that break the schema. A host refuses them before the plugin sees them; a plugin that relies on that is one
/// mistake away from a trap, or from a result that nobody checked. How many gave one is told, and says nothing against it.
async fn broken(world: &World<'_>, called: &Called<'_>, taken: &mut (usize, usize), report: &mut Report) {
    let all = called.samples.first().map(variations::broken).unwrap_or_default();
    for arguments in all.into_iter().filter(|arguments| !called.fits(arguments)) {
        let ran = world.run(&world.home(), called.asked(), &json(&arguments), 1).await;
        if let Some(problem) = trapped(called, &ran, &arguments) {
            report.problem(Requirement::InvalidArguments, problem);
        }
        failures(called, &ran, report);
        taken.0 += usize::from(matches!(ran.outcome, Outcome::Ok { .. }));
        taken.1 += 1;
        let note = match taken {
            (0, all) => format!("{all} of them, and each failed with a reason"),
            (results, all) => {
                format!("{results} of {all} gave a result: before this component stands the host's check alone")
            }
        };
        report.note(Requirement::InvalidArguments, note);
    }
}

/// A tool that there is not. What that cost is what every call costs before its tool does anything.
async fn unknown(world: &World<'_>, report: &mut Report) -> Option<Spent> {
    const NAME: &str = "no_such_tool_of_the_kit";
    report.looked(Requirement::UnknownTool);
    let asked = Asked { name: NAME, time: None };
    let mut ran = world.run(&world.home(), asked, &Json::new("{}"), 1).await;
    // The fastest of several: a machine that does something else as well is not the component's fault.
    for _ in 1..5 {
        let again = world.run(&world.home(), asked, &Json::new("{}"), 1).await;
        if again.spent.map(|spent| spent.time) < ran.spent.map(|spent| spent.time) {
            ran = again;
        }
    }
    let remedy = "answer a name that you do not know with the failure `failed`".to_owned();
    let mut problem =
        |what: String| report.problem(Requirement::UnknownTool, Problem { tool: None, what, remedy: remedy.clone() });
    match &ran.outcome {
        Outcome::Failed(failure)
            if matches!(
                failure.code,
                FailureCode::Trapped | FailureCode::OutOfTime | FailureCode::OutOfMemory | FailureCode::LimitExceeded
            ) =>
        {
            problem(format!("asked for a tool that it does not have, it ended {}", failure.code.as_str()));
        }
        Outcome::Ok { .. } => problem("it gave a result for a tool that it does not have".into()),
        _ => {}
    }
    ran.spent
}

/// A tool that reports this often works long enough to be asked to stop.
const LONG: usize = 16;

/// The same call, of which nobody wants the result any more.
async fn stopped(world: &World<'_>, called: &Called<'_>, report: &mut Report) {
    for sample in called.samples.iter().filter(|_| called.tool.streaming) {
        let arguments = json(sample);
        let wanted = world.run(&world.home(), called.asked(), &arguments, 1).await.updates.len();
        if wanted < LONG {
            report.skip(Requirement::Stop, "no sample of a streaming tool works long enough");
            continue;
        }
        report.looked(Requirement::Stop);
        let ran = world.run_unwanted(called.asked(), &arguments).await;
        if ran.updates.len() >= wanted {
            let what = format!("asked to stop at its first step, it still went through all {wanted} of them");
            let remedy = "ask `stop-requested` between steps, and end with what there is or with a failure";
            report.problem(Requirement::Stop, called.problem(what, remedy));
        } else if let Some(problem) = trapped(called, &ran, sample) {
            report.problem(Requirement::Stop, problem);
        }
    }
}

/// The same call again: in a home of its own, and as a second attempt where the first one left something.
async fn twice(world: &World<'_>, called: &Called<'_>, report: &mut Report) {
    for sample in &called.samples {
        let arguments = json(sample);
        let (first, second) = (world.home(), world.home());
        let one = world.run(&first, called.asked(), &arguments, 1).await;
        let two = world.run(&second, called.asked(), &arguments, 1).await;
        report.looked(Requirement::Determinism);
        if one.outcome != two.outcome {
            let what = format!("with {} it ended in two ways: {} and {}", excerpt(sample), end(&one), end(&two));
            let remedy = "take time and randomness from the host alone, and nothing from the order of a hash table";
            report.problem(Requirement::Determinism, called.problem(what, remedy));
            continue;
        }
        if called.tool.options.hints.idempotent == Some(true) && matches!(one.outcome, Outcome::Ok { .. }) {
            again(world, called, &first, sample, &one, report).await;
        }
    }
}

async fn again(world: &World<'_>, called: &Called<'_>, home: &Home, sample: &Value, one: &Ran, report: &mut Report) {
    report.looked(Requirement::Idempotency);
    let before = world.kept(home);
    let retried = world.run(home, called.asked(), &json(sample), 2).await;
    let remedy = "remember the result under the idempotency key, and give it back when the key comes again";
    if retried.outcome != one.outcome {
        let what = format!("its second attempt ended {} and not {}", end(&retried), end(one));
        report.problem(Requirement::Idempotency, called.problem(what, remedy));
    } else if world.kept(home) != before {
        let what = "its second attempt changed what it keeps";
        report.problem(Requirement::Idempotency, called.problem(what, remedy));
    }
}

fn end(ran: &Ran) -> String {
    match &ran.outcome {
        Outcome::Ok { value, .. } => excerpt(&self::value(value)),
        other => other.error().map_or_else(String::new, |(code, message)| format!("{code} ({message})")),
    }
}

/// A value, short.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        None => text,
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
    }
}
