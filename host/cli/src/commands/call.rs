//! `call`: one call, in this process, on a host that exists only for it.

mod answers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use dispatch::ports::{KnownTool, PolicyQuery, Position};
use dispatch::{Answer, CallRequest, Error, Item, Live, TurnRequest, Until};
use domain::{
    CallId, ConversationId, Digest, Json, Outcome, Principal, Refusal, Span, Turn, event::Rejection, tool::Executor,
};
use policy::CallEffect;
use registry::{NotLoaded, Registry};
use serde_json::json;
use tokio::task::JoinSet;
use toolgate::Host;
use toolgate::config::{Config, Grant, SecretValues};

pub(super) use self::answers::Answers;
use super::{Run, author};
use crate::args::{Cache, checked, given, not_a_file};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Longer than any call may take.
const MAX_WAIT: Span = Span::from_secs(7 * 24 * 60 * 60);

/// The principal that calls and approves.
const CALLER: &str = "cli";

/// The conversation of the call.
const CONVERSATION: &str = "call";

/// Make one call, without a running host.
///
/// Prints progress and log lines to standard error and the result to standard output. It calls server tools only: a person, a
/// client or a provider carries the others out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate call hello.wasm '{\"text\":\"to be or not\"}'           the only tool of the component
  toolgate call hello.wasm hello_count '{\"text\":\"to be\"}'      one of several
  toolgate call hello_count '{\"text\":\"to be\"}' --plugins ./plugins
  toolgate call ledger.wasm ledger_transfer @arguments.json --grant keyvalue --approve
  toolgate call survey.wasm survey_ask @v2.json                  asks you its questions
  toolgate call survey.wasm survey_ask @v2.json --answer '{\"day\":\"Friday\"}' --answer approve

Data that the plugin writes to wasi:keyvalue is lost when the call ends.")]
pub(crate) struct Call {
    /// A component's file, or a tool of the plugins' folder
    #[arg(value_name = "PLUGIN.wasm|TOOL")]
    target: String,
    /// The tool, if the component has several, and the arguments: a JSON object, `@FILE`, or `-` for standard input
    /// [default: {}]
    #[arg(value_name = "[TOOL] [ARGUMENTS]", num_args = 0..=2)]
    rest: Vec<String>,
    /// Approve the call, if the tool or the policy requires it
    #[arg(long)]
    approve: bool,
    /// Answer the questions of a durable tool, in their order: a choice, JSON, `approve`, or `deny` and a comment. Without it,
    /// you are asked at the terminal
    #[arg(long, value_name = "ANSWER")]
    answer: Vec<String>,
    /// Grant the component an access: keyvalue, or http=URL
    #[arg(long, value_name = "ACCESS")]
    grant: Vec<Grant>,
    /// The folder of plugins that has the tool [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// The configuration [default: ./toolgate.toml, if it exists]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the outcome as JSON: `ok` with the result or the error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cache: Cache,
}

impl Run for Call {
    // The host loads the whole folder. Refusals of other plugins do not matter to this call.
    const LOG: &'static str = "error";

    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let (tool, arguments) = parse(&self.rest)?;
        let runtime = super::runtime()?;
        let called = runtime.block_on(async {
            let host = open(&self).await?;
            let tool = find(&host, &self, tool)?;
            check_callable(&tool)?;
            check_policy(&host, &tool, &arguments, self.approve).await?;
            let mut answers = Answers::new(&self.answer);
            let outcome = call(&host, &tool, arguments, "call", &mut answers, terminal).await?;
            if let Some(unasked) = answers.unasked() {
                terminal.warning(&unasked);
            }
            Ok::<_, Report>(outcome)
        });
        runtime.shutdown_background();
        let outcome = called?;
        if self.json {
            return as_json(&outcome, terminal);
        }
        if let Outcome::Ok { value, .. } = &outcome {
            terminal.line(escape::json(value.as_str()))?;
            return Ok(());
        }
        let (code, message) = outcome.error(true).unwrap_or_default();
        Err(Report::new(Exit::Refused, format!("{code}: {message}")))
    }
}

/// Prints the outcome in the form in which a turn has it.
fn as_json(outcome: &Outcome, terminal: &Terminal) -> Result<(), Report> {
    if let Outcome::Ok { value, .. } = outcome {
        terminal.line(escape::json(&format!("{{\"ok\":true,\"result\":{}}}", value.as_str())))?;
        return Ok(());
    }
    let (code, message) = outcome.error(true).unwrap_or_default();
    let failed = json!({"ok": false, "error": {"code": code, "message": message}});
    terminal.line(escape::json(&failed.to_string()))?;
    Err(Report::silent(Exit::Refused))
}

/// The words after the target: a tool, arguments, both or none.
fn parse(rest: &[String]) -> Result<(Option<&str>, Json), Report> {
    let (tool, json) = match rest {
        [tool, json] => (Some(tool.as_str()), json.as_str()),
        [one] if one.trim_start().starts_with(['{', '@']) || one == "-" => (None, one.as_str()),
        [one] => (Some(one.as_str()), "{}"),
        _ => (None, "{}"),
    };
    Ok((tool, arguments(json)?))
}

/// Reads arguments, `@` and a file with them, or `-` for standard input. Checks them and keeps them as they were written.
pub(super) fn arguments(json: &str) -> Result<Json, Report> {
    let text = given(json).map_err(|error| Report::new(Exit::Usage, error))?;
    checked(&text).map_err(|error| {
        Report::new(Exit::Usage, "the arguments are not valid JSON")
            .because(error)
            .hint("write them like '{\"text\":\"to be\"}'")
    })
}

/// Opens a host with the one component, or with a folder of plugins.
async fn open(args: &Call) -> Result<Host, Report> {
    let mut config = Config::read(args.config.as_deref())?;
    let file = Path::new(&args.target);
    let component = match is_file(&args.target) {
        true => Some((author::plugin_name(file)?, author::component(file)?)),
        false => None,
    };
    if let Some((name, bytes)) = &component {
        // The secrets and folders of other plugins need not exist here.
        config.plugin.retain(|plugin, _| plugin.0 == *name);
        if !args.grant.is_empty() {
            config.grant_to(name.clone(), Digest::of(bytes), &args.grant);
        }
    }
    let Some((name, bytes)) = component else {
        if !args.grant.is_empty() {
            return Err(Report::new(Exit::Usage, "--grant is for a component's file, and this is a tool of a folder")
                .hint("name the file, or grant the access in the configuration and name that with --config"));
        }
        let folder = args.plugins.clone().unwrap_or_else(|| config.plugins_folder());
        if !folder.is_dir() {
            author::not_a_folder(file)?;
            not_a_file(&folder)?;
            return Err(Report::new(Exit::Usage, format!("there is no plugin folder at {}", folder.display()))
                .hint("name one with --plugins, or name a component's file instead of the tool"));
        }
        return author::host(config, Some(folder), &args.cache).await;
    };
    let (access, _) = Registry::access(&config.registry(Path::new(""), &SecretValues::default()), &name, &bytes);
    let host = author::host(config, None, &args.cache).await?;
    host.registry().load(name, bytes).await.map_err(|error| {
        let flags = match &error {
            NotLoaded::Rejected { findings, .. } => author::flags::for_call(findings, Some(&access)),
            NotLoaded::Fault(_) => None,
        };
        let report = author::not_loaded(file.display(), error);
        match flags {
            Some(flags) => report.hint(format!("to grant what it lacks for this call only, add {flags}")),
            None => report,
        }
    })?;
    Ok(host)
}

fn is_file(target: &str) -> bool {
    Path::new(target).extension().is_some_and(|extension| extension == "wasm")
}

fn find(host: &Host, args: &Call, tool: Option<&str>) -> Result<Arc<KnownTool>, Report> {
    let wanted = if is_file(&args.target) { tool } else { Some(args.target.as_str()) };
    match (wanted, host.handle().tools().as_slice()) {
        (Some(wanted), _) => author::tool(host, wanted).or_else(|unknown| {
            author::not_a_folder(Path::new(&args.target))?;
            Err(unknown)
        }),
        (None, [only]) => Ok(only.clone()),
        (None, live) => {
            let names: Vec<_> = live.iter().map(|tool| tool.tool.name.as_str()).collect();
            Err(Report::new(Exit::Usage, "the component has several tools")
                .hint(format!("name one of: {}", names.join(", "))))
        }
    }
}

/// Refuses tools that this process cannot call.
pub(super) fn check_callable(tool: &KnownTool) -> Result<(), Report> {
    let name = &tool.tool.name;
    let by = match tool.tool.executor {
        Executor::Server => return Ok(()),
        Executor::Human => "a person answers it",
        Executor::Client => "the user's client runs it",
        Executor::Provider => "the model's provider runs it",
    };
    Err(Report::new(Exit::Refused, format!("{name} has no function to call: {by}"))
        .hint("submit a turn to a host (`toolgate serve`, `toolgate submit`) and answer with `toolgate answer`"))
}

/// Refuses a call that the policy denies, or that needs an approval and has none.
async fn check_policy(host: &Host, tool: &Arc<KnownTool>, arguments: &Json, approve: bool) -> Result<(), Report> {
    // The call itself reports its invalid arguments. Rules see valid calls only.
    if !tool.checks.arguments(arguments).is_empty() {
        return Ok(());
    }
    let question = PolicyQuery {
        known: tool.clone(),
        caller: Host::principal(CALLER)?.id,
        conversation: ConversationId::new(CONVERSATION)?,
        via: None,
        context: None,
        arguments: arguments.clone(),
        step: None,
    };
    let explained = host.policy().explain(&question).await;
    let because = |report: Report| match (&explained.verdict.by, &explained.verdict.reason) {
        (Some(by), Some(reason)) => report.because(format!("{by}: {reason}")),
        (Some(by), None) => report.because(format!("the rule {by} requires it")),
        (None, _) => report,
    };
    let name = &tool.tool.name;
    match explained.effect {
        CallEffect::Deny => Err(because(Report::new(Exit::Refused, format!("the policy denies this call of {name}")))),
        CallEffect::Ask if !approve => {
            let report = because(Report::new(Exit::Refused, format!("{name} requires approval")));
            Err(report.hint("approve the call with --approve"))
        }
        CallEffect::Ask | CallEffect::Run => Ok(()),
    }
}

/// Makes one call under this id and prints its progress. The host does not repeat a call whose id was used before.
pub(super) async fn call(
    host: &Host,
    tool: &KnownTool,
    arguments: Json,
    id: &str,
    answers: &mut Answers,
    terminal: &Terminal,
) -> Result<Outcome, Report> {
    let (by, handle) = (Host::principal(CALLER)?, host.handle());
    let conversation = ConversationId::new(CONVERSATION)?;
    let id = CallId::new(id)?;
    let mut follower = handle.follow(&by, &conversation, Position::default()).await?;
    let request = TurnRequest {
        conversation: conversation.clone(),
        calls: vec![CallRequest { id, tool: tool.tool.name.as_str().into(), arguments, result: None, origin: None }],
        context: None,
        rejection: Rejection::default(),
        ephemeral: false,
    };
    let turn = handle.submit(&by, request).await?.turn;
    approve(host, &by, &turn).await?;
    // In a task of its own: in this one, it could hold the turn while this one waits for the turn.
    let mut settled = JoinSet::new();
    settled.spawn({
        let (handle, by, conversation) = (handle.clone(), by.clone(), conversation.clone());
        async move { handle.wait(&by, &conversation, turn.id, Until::Ended, MAX_WAIT).await }
    });
    loop {
        // Progress comes before the outcome, so it is printed first.
        tokio::select! {
            biased;
            item = follower.next() => match item? {
                Item::Live(live) => {
                    print(&live, terminal);
                    continue;
                }
                Item::Committed(_) => {}
            },
            line = answers.line() => answers.reply(line?, host, &by, terminal).await?,
            Some(turn) = settled.join_next() => {
                let turn = turn??;
                let outcome = turn.calls.first().and_then(|call| call.outcome()).cloned();
                return outcome.ok_or_else(|| Report::new(Exit::HostFault, "the call has no outcome"));
            }
        }
        let now = handle.turn(&by, &conversation, turn.id).await?;
        answers.answer(host, &by, &now, terminal).await?;
    }
}

/// Approves the call with exactly the arguments of the command line.
async fn approve(host: &Host, by: &Principal, turn: &Turn) -> Result<(), Report> {
    for (suspension, _) in turn.calls.iter().flat_map(|call| &call.suspensions) {
        let answer = Answer {
            suspension: suspension.id,
            decision: domain::suspension::Decision::Approve,
            data: None,
            arguments: None,
            comment: None,
            expect_digest: Some(suspension.digest),
            standing: None,
        };
        resolve(host, by, answer).await?;
    }
    Ok(())
}

/// Gives an answer. Only one person is here.
async fn resolve(host: &Host, by: &Principal, answer: Answer) -> Result<(), Report> {
    let answered = host.handle().resolve(by, answer).await.map_err(|error| match error {
        Error::Refused(Refusal::Invalid(violations)) => {
            Report::new(Exit::Refused, "the answer is not valid").because_of(violations)
        }
        error => error.into(),
    })?;
    match answered.votes_missing {
        0 => Ok(()),
        missing => Err(Report::new(Exit::Refused, format!("{missing} more people must approve this call"))
            .hint("submit it to a host (`toolgate serve`, `toolgate submit`), where they can approve it")),
    }
}

fn print(live: &Live, terminal: &Terminal) {
    let line = match live {
        Live::Progress { progress, .. } => {
            let part = progress.fraction.map_or_else(String::new, |part| format!("{:3.0} % ", part * 100.0));
            format!("{part}{}", progress.message)
        }
        Live::Log { level, line, .. } => format!("{}: {line}", level.as_str()),
        _ => return,
    };
    terminal.note(&format!("{}\n", terminal.note_style(Style::Faint, &escape::line(&line))));
}
