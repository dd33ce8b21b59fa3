//! Tests of the requirements that need calls. A tool is first called with its examples or with simple arguments. If it answers,
//! it is called with unusual arguments.

use std::cmp::Reverse;
use std::sync::Arc;

use dispatch::ports::Checks;
use domain::{Json, Outcome, Tool, outcome::FailureCode};
use kit::examples::{Example, Expected, Failure};
use sandbox::{RunUsage, Update};
use serde_json::Value;

use crate::report::{ConformanceReport, Defect};
use crate::world::{Asked, CutOff, Home, Ran, World};
use crate::{Requirement, loading, samples, variations};

/// A tool under test.
struct Called<'a> {
    tool: &'a Tool,
    checks: Arc<dyn Checks>,
    /// Arguments of calls that it answered. First those that gave a result, and among equals the largest.
    samples: Vec<Value>,
}

impl Called<'_> {
    fn name(&self) -> &str {
        self.tool.name.as_str()
    }

    fn asked(&self) -> Asked<'_> {
        let options = &self.tool.options;
        Asked { name: self.name(), time: options.timeout, durable: options.durable, answers: &[] }
    }

    fn problem(&self, what: impl Into<String>, remedy: impl Into<String>) -> Defect {
        Defect { tool: Some(self.name().to_owned()), what: what.into(), remedy: remedy.into() }
    }

    fn fits(&self, arguments: &Value) -> bool {
        self.checks.arguments(&json(arguments)).is_empty()
    }
}

fn json(value: &Value) -> Json {
    Json::unchecked(value.to_string())
}

/// Checks every server tool.
pub(crate) async fn test(world: &World<'_>, tools: &[Tool], examples: &[Example], report: &mut ConformanceReport) {
    let run: Vec<&Tool> = tools.iter().filter(|tool| loading::is_run(tool)).collect();
    let stranger = |example: &&Example| !run.iter().any(|tool| tool.name.as_str() == example.tool);
    for stranger in examples.iter().filter(stranger) {
        let what = format!("{}: the component has no such server tool", stranger.title());
        report.fail(Requirement::Examples, what, "correct the name in the examples, or remove the example");
    }
    if run.is_empty() {
        report.skip_rest("the component runs no tool itself");
        return;
    }
    report.skip_rest("no tool answered");
    let (mut least, mut taken): (Option<RunUsage>, _) = (None, (0, 0));
    for tool in run {
        let mut called = Called { tool, checks: registry::checks(tool), samples: Vec::new() };
        if let Some(spent) = answers(world, &mut called, examples, report).await {
            least = least.into_iter().chain([spent]).min_by_key(|spent| spent.peak_memory);
        }
        if called.samples.is_empty() {
            continue;
        }
        report.answered();
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

/// Calls the tool with its examples. Without examples that can run, it gets the smallest arguments that fit. Returns the usage
/// of the last call that it answered.
async fn answers(
    world: &World<'_>,
    called: &mut Called<'_>,
    examples: &[Example],
    report: &mut ConformanceReport,
) -> Option<RunUsage> {
    let (mut least, mut samples) = (None, Vec::new());
    let mut ran_any = false;
    let home = world.home();
    let name = called.tool.name.as_str();
    for example in examples.iter().filter(|example| example.tool == name) {
        let arguments = Value::Object(example.arguments.clone());
        report.looked(Requirement::Examples);
        if let Some(violation) = called.checks.arguments(&json(&arguments)).first() {
            if example.expected == Expected::Failure(Failure::InvalidArguments) {
                // A host refuses these arguments before the plugin sees them.
                continue;
            }
            let what = format!("{}: its arguments do not fit the schema: {violation}", example.title());
            report.problem(Requirement::Examples, called.problem(what, "correct the example, or the schema"));
            continue;
        }
        let asked = Asked { answers: &example.answers, ..called.asked() };
        let ran = world.run(&home, asked, &json(&arguments), 1).await;
        if let Some(CutOff::Answer(why)) = &ran.cut_off {
            let number = example.answers.len() - ran.unasked;
            let what = format!("{}: its answer {number} is refused: {why}", example.title());
            report.problem(Requirement::Examples, called.problem(what, "correct the answer, or the tool's question"));
            continue;
        }
        ran_any = true;
        if trapped(called, &ran, &arguments).is_none() {
            compare(called, example, &ran, report);
        }
        if let Some(spent) = settle(called, &ran, &arguments, report) {
            least = Some(spent);
            samples.push((matches!(ran.outcome, Outcome::Ok { .. }), arguments));
        }
    }
    // Later tests vary the best sample. A sample on which the tool fails early shows little.
    samples.sort_by_key(|(has_result, sample)| (!has_result, Reverse(variations::size(sample))));
    called.samples.extend(samples.into_iter().map(|(_, sample)| sample));
    if !ran_any {
        let misfits = |sample: &Value| {
            let violations = called.checks.arguments(&json(sample));
            violations.into_iter().map(|violation| violation.pointer).collect()
        };
        let Some(sample) = samples::fitting(&value(&called.tool.parameters), misfits) else {
            let what = "the kit could not generate arguments for it";
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

/// Checks the requirements that every run can break. Returns the usage of the run. `None`: the tool did not answer.
fn settle(called: &Called<'_>, ran: &Ran, arguments: &Value, report: &mut ConformanceReport) -> Option<RunUsage> {
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

/// The problem of a run in which the tool returned neither a result nor a failure.
fn trapped(called: &Called<'_>, ran: &Ran, arguments: &Value) -> Option<Defect> {
    if let Some(CutOff::Bound(why)) = &ran.cut_off {
        let remedy = "end after fewer waits: each run repeats the code before the last one";
        return Some(called.problem(format!("with {}, {why}", excerpt(arguments)), remedy));
    }
    let Outcome::Failed(failure) = &ran.outcome else { return None };
    let remedy = match failure.code {
        FailureCode::InvalidArguments
        | FailureCode::ToolFailed
        | FailureCode::ToolUnavailable
        | FailureCode::InvalidResult => {
            return None;
        }
        FailureCode::Trapped => "catch the error and return a failure, with a sentence for the model",
        FailureCode::OutOfTime => "end sooner, or declare its time with the option `timeout_ms`",
        FailureCode::OutOfMemory | FailureCode::LimitExceeded => {
            "limit its arguments in the schema (`maxLength`, `maxItems`, `maximum`)"
        }
        _ => "this is the host's fault: run the kit again, and report it if it happens again",
    };
    let last = ran.lines.last().map(|line| format!("; it last logged {line:?}")).unwrap_or_default();
    let what = format!("with {} it ended {}: {}{last}", excerpt(arguments), failure.code.as_str(), failure.message);
    Some(called.problem(what, remedy))
}

fn results(called: &Called<'_>, ran: &Ran, report: &mut ConformanceReport) {
    let remedy = "return a result that fits the schema of the option `result`, or correct the schema";
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

fn failures(called: &Called<'_>, ran: &Ran, report: &mut ConformanceReport) {
    if let Outcome::Failed(failure) = &ran.outcome {
        report.looked(Requirement::Failures);
        if failure.message.trim().is_empty() {
            let remedy = "state what was wrong and what to do instead: a model reads it and tries again";
            report.problem(Requirement::Failures, called.problem("it failed without a message", remedy));
        }
    }
}

fn progress(called: &Called<'_>, updates: &[Update], report: &mut ConformanceReport) {
    let remedy = match called.tool.streaming {
        true => "report fractions that grow from 0 to 1, each with a line for people",
        false => "declare the tool `streaming`, or report no progress, because the host drops it",
    };
    let mut problem = |what: String| report.problem(Requirement::Progress, called.problem(what, remedy));
    if !called.tool.streaming {
        if !updates.is_empty() {
            problem(format!("it reports progress ({} updates) but is not declared `streaming`", updates.len()));
        }
        return;
    }
    if updates.iter().any(|update| update.message.trim().is_empty()) {
        problem("an update has no message".into());
    }
    let fractions: Vec<f64> = updates.iter().filter_map(|update| update.fraction).collect();
    if let Some(back) = fractions.windows(2).find(|pair| pair[1] < pair[0]) {
        problem(format!("its fractions go back, from {} to {}", back[0], back[1]));
    }
    report.looked(Requirement::Progress);
}

/// Compares a run with its example. Not for a run that trapped: [`settle`] reports it.
fn compare(called: &Called<'_>, example: &Example, ran: &Ran, report: &mut ConformanceReport) {
    let (found, error) = match &ran.outcome {
        Outcome::Ok { value, .. } => (Some(self::value(value)), None),
        other => (None, other.error(true)),
    };
    let came_to = match (&found, &error) {
        (Some(found), _) => Ok(found),
        (None, error) => Err(error.as_ref().map_or(("", ""), |(code, message)| (*code, message.as_str()))),
    };
    if let Some(difference) = example.difference(came_to) {
        let what = format!("{}: {difference}", example.title());
        report.problem(Requirement::Examples, called.problem(what, "correct the tool, or the example"));
    }
    if ran.unasked > 0 {
        let all = example.answers.len();
        let what = format!("{}: the call asked for {} of {all} answers", example.title(), all - ran.unasked);
        report.problem(Requirement::Examples, called.problem(what, "correct the tool, or remove the other answers"));
    }
}

/// Calls the tool with valid arguments that programs often mishandle.
async fn unusual(world: &World<'_>, called: &Called<'_>, report: &mut ConformanceReport) {
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
            } else if let Outcome::Failed(failure) = &ran.outcome
                && failure.code == FailureCode::InvalidResult
            {
                report.problem(requirement, called.problem(failure.message.clone(), "return one JSON text"));
            }
        }
    }
}

/// The variations of the best sample that fit the schema.
fn varied(called: &Called<'_>, change: &dyn Fn(&Value) -> Option<Value>) -> Vec<Value> {
    let sample = called.samples.first().into_iter();
    sample.flat_map(|sample| variations::changed(sample, change)).filter(|arguments| called.fits(arguments)).collect()
}

/// The maximum number of variations with long texts. Each needs many checks to find the largest length that fits.
const MAX_LONG_TEXTS: usize = 8;

/// Replaces all texts at once, and then each alone, by the longest text that both the schema and the host accept.
fn largest(world: &World<'_>, called: &Called<'_>) -> Vec<Value> {
    let Some(sample) = called.samples.first() else { return Vec::new() };
    let with = |length: usize, place: usize| {
        let mut text = "lorem ipsum ".repeat(length / 12 + 1);
        text.truncate(length);
        variations::changed_at(sample, &|value| variations::text(value, &text), place)
    };
    let fits = |made: &Value| json(made).size() <= world.limits.arguments && called.fits(made);
    let (all, max) = (variations::places(sample, &|value| variations::text(value, "")), world.limits.arguments);
    // With several texts, index 0 replaces all of them, so they share the limit.
    let max = |place: usize| if place == 0 && all > 1 { max / (all - 1) } else { max };
    (0..all.min(MAX_LONG_TEXTS)).filter_map(|place| longest(max(place), &|length| with(length, place), &fits)).collect()
}

/// The value with the largest length that fits, up to `max`. This assumes that a schema that accepts a length also accepts
/// each shorter one. If it does not, the function can return a shorter value, or none.
fn longest(max: usize, made: &dyn Fn(usize) -> Value, fits: &dyn Fn(&Value) -> bool) -> Option<Value> {
    let (mut beyond, mut length) = (max, max);
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

/// Calls the tool with arguments that break the schema. A host refuses such arguments, but a tool should not need that. A
/// trap is a problem. A result is not: the report only says how many calls returned one.
async fn broken(world: &World<'_>, called: &Called<'_>, taken: &mut (usize, usize), report: &mut ConformanceReport) {
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
                format!("{results} of {all} gave a result, so this component relies on the host's check")
            }
        };
        report.note(Requirement::InvalidArguments, note);
    }
}

/// Calls a tool that does not exist. The usage of this call is the least that a call of the component can cost.
async fn unknown(world: &World<'_>, report: &mut ConformanceReport) -> Option<RunUsage> {
    const NAME: &str = "no_such_tool_of_the_kit";
    report.looked(Requirement::UnknownTool);
    let asked = Asked { name: NAME, time: None, durable: false, answers: &[] };
    let mut ran = world.run(&world.home(), asked, &Json::unchecked("{}"), 1).await;
    // The fastest of several runs counts, because other work on the machine is not the component's fault.
    for _ in 1..5 {
        let again = world.run(&world.home(), asked, &Json::unchecked("{}"), 1).await;
        if again.spent.map(|spent| spent.time) < ran.spent.map(|spent| spent.time) {
            ran = again;
        }
    }
    let remedy = "answer an unknown name with the failure `failed`";
    let mut problem = |what: String| report.fail(Requirement::UnknownTool, what, remedy);
    match &ran.outcome {
        Outcome::Failed(failure)
            if matches!(
                failure.code,
                FailureCode::Trapped | FailureCode::OutOfTime | FailureCode::OutOfMemory | FailureCode::LimitExceeded
            ) =>
        {
            problem(format!("a call of an unknown tool ended {}", failure.code.as_str()));
        }
        Outcome::Ok { .. } => problem("it gave a result for an unknown tool".into()),
        _ => {}
    }
    ran.spent
}

/// A tool with this many updates runs long enough for the stop test.
const MIN_UPDATES: usize = 16;

/// Makes the same calls again, and asks them to stop from the start.
async fn stopped(world: &World<'_>, called: &Called<'_>, report: &mut ConformanceReport) {
    for sample in called.samples.iter().filter(|_| called.tool.streaming) {
        let arguments = json(sample);
        let wanted = world.run(&world.home(), called.asked(), &arguments, 1).await.updates.len();
        if wanted < MIN_UPDATES {
            report.skip(Requirement::Stop, "no sample of a streaming tool runs long enough");
            continue;
        }
        report.looked(Requirement::Stop);
        let ran = world.run_unwanted(called.asked(), &arguments).await;
        if ran.updates.len() >= wanted {
            let what = format!("it was asked to stop at its first step, and still made all {wanted} steps");
            let remedy = "check `stop-requested` between steps, and end with a partial result or a failure";
            report.problem(Requirement::Stop, called.problem(what, remedy));
        } else if let Some(problem) = trapped(called, &ran, sample) {
            report.problem(Requirement::Stop, problem);
        }
    }
}

/// Makes the same call twice with separate storage. If the tool is idempotent, it also gets a second attempt with the same
/// storage.
async fn twice(world: &World<'_>, called: &Called<'_>, report: &mut ConformanceReport) {
    for sample in &called.samples {
        let arguments = json(sample);
        let (first, second) = (world.home(), world.home());
        let one = world.run(&first, called.asked(), &arguments, 1).await;
        let two = world.run(&second, called.asked(), &arguments, 1).await;
        report.looked(Requirement::Determinism);
        if one.outcome != two.outcome {
            let what = format!("with {} it ended in two ways: {} and {}", excerpt(sample), end(&one), end(&two));
            let remedy = "take time and randomness only from the host, and do not depend on the order of a hash table";
            report.problem(Requirement::Determinism, called.problem(what, remedy));
            continue;
        }
        if called.tool.options.hints.idempotent == Some(true) && matches!(one.outcome, Outcome::Ok { .. }) {
            again(world, called, &first, sample, &one, report).await;
        }
    }
}

async fn again(
    world: &World<'_>,
    called: &Called<'_>,
    home: &Home,
    sample: &Value,
    one: &Ran,
    report: &mut ConformanceReport,
) {
    report.looked(Requirement::Idempotency);
    let before = world.kept(home);
    let retried = world.run(home, called.asked(), &json(sample), 2).await;
    let remedy = "store the result under the idempotency key, and return it when the key comes again";
    if retried.outcome != one.outcome {
        let what = format!("its second attempt ended {} instead of {}", end(&retried), end(one));
        report.problem(Requirement::Idempotency, called.problem(what, remedy));
    } else if world.kept(home) != before {
        let what = "its second attempt changed its stored data";
        report.problem(Requirement::Idempotency, called.problem(what, remedy));
    }
}

fn end(ran: &Ran) -> String {
    match &ran.outcome {
        Outcome::Ok { value, .. } => excerpt(&self::value(value)),
        other => other.error(true).map_or_else(String::new, |(code, message)| format!("{code} ({message})")),
    }
}

/// A value, shortened.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        None => text,
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
    }
}
