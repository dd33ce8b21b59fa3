//! `call`: one call, in this process, on a host that exists for it alone.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use dispatch::ports::{LiveTool, Position, Question, Tools as _};
use dispatch::{Answer, CallRequest, Item, Live, TurnRequest, Until};
use domain::{CallId, ConversationId, Digest, Executor, Json, Outcome, Principal, Rejection, Span, Turn};
use policy::Effect;
use registry::NotLoaded;
use serde_json::value::RawValue;
use toolgate::Host;
use toolgate::config::Config;

use super::author;
use super::check::plugin_name;
use crate::args::Call;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

/// Longer than any call may take, and than anybody waits for one.
const LONG: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Who calls, and approves.
const CALLER: &str = "cli";

/// Where it is called.
const CONVERSATION: &str = "call";

pub(super) fn run(args: &Call, terminal: &Terminal) -> Result<(), Report> {
    let (tool, arguments) = parse(&args.rest)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let called = runtime.block_on(async {
        let host = open(args).await?;
        let tool = find(&host, args, tool)?;
        callable(&tool)?;
        permitted(&host, &tool, &arguments, args.approve).await?;
        call(&host, &tool, arguments, "call", terminal).await
    });
    runtime.shutdown_background();
    let outcome = called?;
    if let Outcome::Ok { value, .. } = &outcome {
        terminal.line(text::json(value.as_str()))?;
        return Ok(());
    }
    let (code, message) = outcome.error().unwrap_or_default();
    Err(Report::new(Exit::Refused, format!("{code}: {message}")))
}

/// What follows the target: a tool, arguments, both or none.
fn parse(rest: &[String]) -> Result<(Option<&str>, Json), Report> {
    let (tool, text) = match rest {
        [tool, text] => (Some(tool.as_str()), text.as_str()),
        [one] if one.trim_start().starts_with('{') => (None, one.as_str()),
        [one] => (Some(one.as_str()), "{}"),
        _ => (None, "{}"),
    };
    Ok((tool, arguments(text)?))
}

/// Arguments as they were typed.
pub(super) fn arguments(text: &str) -> Result<Json, Report> {
    let arguments: &RawValue = serde_json::from_str(text).map_err(|error| {
        Report::new(Exit::Usage, "the arguments are not JSON").because(error).hint("as in '{\"text\":\"to be\"}'")
    })?;
    Ok(Json::new(arguments.get()))
}

/// A host with the one component, or with a folder of them.
async fn open(args: &Call) -> Result<Host, Report> {
    let mut config = Config::read(args.config.as_deref())?;
    let file = Path::new(&args.target);
    let named = is_file(&args.target).then(|| plugin_name(file)).transpose()?;
    let bytes = named.as_ref().map(|_| author::component(file)).transpose()?.unwrap_or_default();
    if let Some(name) = &named {
        // What others are granted, their secrets and folders, is not needed here and need not be there.
        config.plugin.retain(|plugin, _| plugin.0 == *name);
        if !args.grant.is_empty() {
            config.grant_to(name.clone(), Digest::of(&bytes), &args.grant);
        }
    }
    let folder = args.plugins.clone().unwrap_or_else(|| config.plugins_folder());
    (config.data, config.plugins) = (None, None);
    // A guest or a few are all that this host will ever run.
    config.pool = NonZeroU32::new(16);
    let builder = Host::builder().config(config).compiler(super::compiler()?).memory().approve_own_calls();
    let builder = builder.user_cache(args.cache.compiled());
    let Some(name) = named else {
        if !folder.is_dir() {
            return Err(Report::new(Exit::Usage, format!("there is no folder of plugins at {}", folder.display()))
                .hint("name one with --plugins, or a component's file in the place of the tool"));
        }
        return Ok(builder.plugins(folder).open().await.map_err(anyhow::Error::from)?);
    };
    let host = builder.open().await.map_err(anyhow::Error::from)?;
    match host.registry().load(name, bytes).await {
        Ok(_) => Ok(host),
        Err(NotLoaded::Rejected { findings, .. }) => {
            let report = Report::new(Exit::Refused, format!("{} was refused", file.display()));
            Err(findings.iter().fold(report, |report, finding| report.because(finding)))
        }
        Err(error) => Err(anyhow::Error::from(error).into()),
    }
}

fn is_file(target: &str) -> bool {
    Path::new(target).extension().is_some_and(|extension| extension == "wasm")
}

fn find(host: &Host, args: &Call, tool: Option<&str>) -> Result<Arc<LiveTool>, Report> {
    let live = host.handle().tools();
    let wanted = if is_file(&args.target) { tool } else { Some(args.target.as_str()) };
    let names: Vec<_> = live.iter().map(|tool| tool.tool.name.as_str()).collect();
    let found = match (wanted, live.as_slice()) {
        (Some(wanted), _) => live.iter().find(|tool| tool.tool.name.as_str() == wanted),
        (None, [only]) => Some(only),
        (None, _) => {
            return Err(Report::new(Exit::Usage, "the component has several tools")
                .hint(format!("name one of: {}", names.join(", "))));
        }
    };
    found.cloned().ok_or_else(|| {
        let wanted = wanted.unwrap_or_default();
        let report = Report::new(Exit::Usage, format!("there is no tool {wanted:?}"));
        match host.registry().find(wanted) {
            Err(Some(near)) => report.hint(format!("did you mean {near}?")),
            _ => report.hint(format!("there are: {}", names.join(", "))),
        }
    })
}

/// Whether a call can be made here, or why not and how else.
pub(super) fn callable(tool: &LiveTool) -> Result<(), Report> {
    let name = &tool.tool.name;
    let elsewhere = match tool.tool.executor {
        Executor::Server => None,
        Executor::Human => Some("a person answers it"),
        Executor::Client => Some("the program at the user's end carries it out"),
        Executor::Provider => Some("the model's provider carries it out in its own stream"),
    };
    if let Some(who) = elsewhere {
        return Err(Report::new(Exit::Refused, format!("{name} has no function to call: {who}"))
            .hint("submit a turn to a host (`toolgate serve`, `toolgate submit`) and answer with `toolgate answer`"));
    }
    Ok(())
}

/// Whether the policy lets this call be made, or why not.
async fn permitted(host: &Host, tool: &Arc<LiveTool>, arguments: &Json, approve: bool) -> Result<(), Report> {
    // The call itself says what is wrong with its arguments; rules are asked about calls that could be made.
    if !tool.checks.arguments(arguments).is_empty() {
        return Ok(());
    }
    let question = Question {
        live: tool.clone(),
        caller: Host::principal(CALLER).map_err(anyhow::Error::from)?.id,
        conversation: ConversationId::new(CONVERSATION).map_err(anyhow::Error::from)?,
        context: None,
        arguments: arguments.clone(),
    };
    let explained = host.policy().explain(&question).await;
    let because = |report: Report| match (&explained.verdict.by, &explained.verdict.reason) {
        (Some(by), Some(reason)) => report.because(format!("{by}: {reason}")),
        (Some(by), None) => report.because(format!("the rule {by} says so")),
        (None, _) => report,
    };
    let name = &tool.tool.name;
    match explained.effect {
        Effect::Deny => Err(because(Report::new(Exit::Refused, format!("the policy denies this call of {name}")))),
        Effect::Ask if !approve => {
            let report = because(Report::new(Exit::Refused, format!("{name} requires approval")));
            Err(report.hint("approve the call with --approve"))
        }
        Effect::Ask | Effect::Run => Ok(()),
    }
}

/// One call under this id, told while it runs. A call of an id that was used before is not made again.
pub(super) async fn call(
    host: &Host,
    tool: &LiveTool,
    arguments: Json,
    id: &str,
    terminal: &Terminal,
) -> Result<Outcome, Report> {
    let (by, handle) = (Host::principal(CALLER).map_err(anyhow::Error::from)?, host.handle());
    let conversation = ConversationId::new(CONVERSATION).map_err(anyhow::Error::from)?;
    let id = CallId::new(id).map_err(anyhow::Error::from)?;
    let mut follower = handle.follow(&by, &conversation, Position::default()).await.map_err(anyhow::Error::from)?;
    let request = TurnRequest {
        conversation: conversation.clone(),
        calls: vec![CallRequest { id, tool: tool.tool.name.as_str().into(), arguments, result: None }],
        context: None,
        rejection: Rejection::default(),
        ephemeral: false,
    };
    let turn = handle.submit(&by, request).await.map_err(anyhow::Error::from)?.turn;
    approve(host, &by, &turn).await?;
    let settled = handle.wait(&by, &conversation, turn.id, Until::Settled, LONG);
    tokio::pin!(settled);
    loop {
        // What was reported before the end is told before the end.
        tokio::select! {
            biased;
            item = follower.next() => tell(&item.map_err(anyhow::Error::from)?, terminal),
            turn = &mut settled => {
                let turn = turn.map_err(anyhow::Error::from)?;
                let outcome = turn.calls.first().and_then(|call| call.outcome()).cloned();
                return outcome.ok_or_else(|| Report::new(Exit::HostFault, "the call has no outcome"));
            }
        }
    }
}

/// Approves what the command line approved: the call with exactly the arguments that were given.
async fn approve(host: &Host, by: &Principal, turn: &Turn) -> Result<(), Report> {
    for (suspension, _) in turn.calls.iter().flat_map(|call| &call.suspensions) {
        let answer = Answer {
            suspension: suspension.id,
            decision: "approve".into(),
            data: None,
            arguments: None,
            comment: None,
            expect_digest: Some(suspension.digest),
            standing: None,
        };
        let answered = host.handle().resolve(by, answer).await.map_err(anyhow::Error::from)?;
        if answered.votes_missing > 0 {
            let message = format!("{} more have to approve this call", answered.votes_missing);
            return Err(Report::new(Exit::Refused, message)
                .hint("submit it to a host (`toolgate serve`, `toolgate submit`), where they can"));
        }
    }
    Ok(())
}

fn tell(item: &Item, terminal: &Terminal) {
    let text = match item {
        Item::Live(Live::Progress { progress, .. }) => {
            let part = progress.fraction.map_or_else(String::new, |part| format!("{:3.0} % ", part * 100.0));
            format!("{part}{}", progress.message)
        }
        Item::Live(Live::Log { level, line, .. }) => format!("{level}: {line}"),
        _ => return,
    };
    terminal.note(&format!("{}\n", terminal.note_ink(Ink::Faint, &text::line(&text))));
}
