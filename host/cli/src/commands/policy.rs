//! `policy`: what the operator's rules make of a call, and what they were tried with.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use domain::{Json, Tool};
use policy::{Arguments, Explanation, Subject};
use registry::Registry;
use serde_json::value::RawValue;
use server::wire;
use toolgate::config::{Config, SecretValues};

use super::check::plugin_name;
use crate::args::{Explain, Policy, PolicyCommand, TestPolicy};
use crate::client::{Client, understand};
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

pub(super) fn run(args: &Policy, terminal: &Terminal) -> Result<(), Report> {
    match &args.command {
        PolicyCommand::Explain(args) => explain(args, terminal),
        PolicyCommand::Test(args) => test(args, terminal),
    }
}

fn explain(args: &Explain, terminal: &Terminal) -> Result<(), Report> {
    let arguments = object(&args.arguments, "the arguments")?;
    let explained = if args.host.url.is_some() { asked(args, &arguments)? } else { read(args, arguments)? };
    if args.json {
        terminal.line(text::json(&serde_json::to_string(&explained)?))?;
        return Ok(());
    }
    terminal.line(as_text(args, &explained, terminal).trim_end())?;
    Ok(())
}

fn object(text: &str, what: &str) -> Result<Json, Report> {
    let wrong = |why: String| {
        Report::new(Exit::Usage, format!("{what} are not a JSON object")).because(why).hint("as in '{\"amount\":5000}'")
    };
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if raw.get().starts_with('{') { Ok(Json::new(raw.get())) } else { Err(wrong("it is another value".to_owned())) }
}

/// What a host says.
fn asked(args: &Explain, arguments: &Json) -> Result<wire::Explanation, Report> {
    let context = args.context.as_deref().map(|context| object(context, "the values of the context")).transpose()?;
    let question = wire::Explain {
        tool: args.tool.to_string(),
        arguments: arguments.into(),
        caller: Some(args.caller.to_string()),
        conversation: args.conversation.as_ref().map(ToString::to_string),
        context: context.as_ref().map(Into::into),
    };
    let body = serde_json::to_vec(&question)?;
    understand(&Client::new(&args.host)?.post("/v1/policy/explain", &[], &body)?)
}

/// What the configuration and the plugins' folder say.
fn read(args: &Explain, arguments: Json) -> Result<wire::Explanation, Report> {
    let mut config = Config::read(args.host.data.config.as_deref())?;
    // One guest at a time is all that this sandbox will ever run.
    config.pool = NonZeroU32::new(4);
    let folder = args.plugins.clone().unwrap_or_else(|| config.plugins_folder());
    let tool = find(&config, &folder, args.tool.as_str())?;
    let subject = Subject {
        tool: Some(tool.name.as_str()),
        plugin: Some(tool.plugin.as_str()),
        caller: Some(args.caller.as_str()),
        arguments: Arguments::new(arguments),
    };
    Ok(toolgate::doors::explanation(&Explanation::of_rules(&config.operator_rules(), &subject, &tool)))
}

/// The tool of this name among the components of a folder.
fn find(config: &Config, folder: &Path, name: &str) -> Result<Tool, Report> {
    let files = components(folder).with_context(|| format!("cannot read the folder of plugins {}", folder.display()));
    let files = files.map_err(|error| Report::from(error).hint("name it with --plugins, or ask a host with --url"))?;
    let sandbox = toolgate::checking_sandbox(config, Some(super::compiler()?), None).map_err(anyhow::Error::from)?;
    let settings = config.registry(Path::new(""), &SecretValues::default());
    let mut names = Vec::new();
    for file in &files {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let checked = Registry::check(&sandbox, &settings, &plugin_name(file)?, &bytes);
        for tool in checked.with_context(|| format!("the host failed to check {}", file.display()))?.tools {
            if tool.name.as_str() == name {
                return Ok(tool);
            }
            names.push(tool.name.to_string());
        }
    }
    let report = Report::new(Exit::Refused, format!("no plugin in {} has a tool {name}", folder.display()));
    Err(if names.is_empty() { report } else { report.hint(format!("there are: {}", names.join(", "))) })
}

fn components(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn as_text(args: &Explain, explained: &wire::Explanation, terminal: &Terminal) -> String {
    let mut lines = String::new();
    let width = explained.steps.iter().map(|step| text::line(&step.name).chars().count()).max().unwrap_or_default();
    for step in &explained.steps {
        let (fits, ink) = if step.matched { ("fits", Ink::Strong) } else { ("    ", Ink::Faint) };
        let name = format!("{:width$}", text::line(&step.name));
        let rule = format!("{:5}", rule(step.rule));
        lines.push_str(&format!("{fits}  {rule}  {}  {}\n", terminal.ink(ink, &name), text::line(&step.why)));
    }
    for violation in &explained.invalid {
        lines.push_str(&format!("the call would fail before: {}\n", text::line(violation)));
    }
    let decided = match &explained.by {
        Some(by) => {
            let reason = explained.reason.as_deref().map(|reason| format!(", because {}", text::line(reason)));
            format!("{} decides{}", text::line(by), reason.unwrap_or_default())
        }
        None => format!("no rule decides; the tool declares {}", word(&explained.declared)),
    };
    let ink = match explained.effective {
        wire::Effect::Run => Ink::Good,
        wire::Effect::Ask => Ink::Open,
        wire::Effect::Deny => Ink::Bad,
    };
    let effect = match explained.effective {
        wire::Effect::Run => "goes on without a person",
        wire::Effect::Ask => "asks a person",
        wire::Effect::Deny => "is denied",
    };
    let risk = explained.risk.as_deref().map(|risk| format!(", at risk {risk}")).unwrap_or_default();
    let effect = terminal.ink(ink, effect);
    lines.push_str(&format!("{} by {}: it {effect}{risk}: {decided}\n", args.tool, args.caller));
    for need in &explained.needs {
        let who = if need.who.is_empty() { "whoever has the role approver".to_owned() } else { need.who.join(" or ") };
        lines.push_str(&format!("needs {} of {}\n", need.quorum, text::line(&who)));
    }
    lines
}

fn rule(rule: wire::Rule) -> &'static str {
    match rule {
        wire::Rule::Allow => "allow",
        wire::Rule::Ask => "ask",
        wire::Rule::Deny => "deny",
    }
}

fn word(approval: &wire::Approval) -> &'static str {
    match approval {
        wire::Approval::Auto => "auto",
        wire::Approval::RequiresApproval => "requires-approval",
    }
}

fn test(args: &TestPolicy, terminal: &Terminal) -> Result<(), Report> {
    let config = Config::read(args.config.as_deref())?;
    let tried = config.tried_rules();
    let width = tried.iter().map(|rule| rule.name.chars().count()).max().unwrap_or_default();
    for rule in tried {
        let examples = match (rule.matches, rule.not_matches) {
            (0, 0) => terminal.ink(Ink::Open, "no examples"),
            (matches, not_matches) => format!("{matches} match, {not_matches} not_match"),
        };
        terminal.line(format!("{:width$}  {examples}", text::line(&rule.name)))?;
    }
    let examples: usize = tried.iter().map(|rule| rule.matches + rule.not_matches).sum();
    terminal.line(format!(
        "{} rules, {examples} examples: {}",
        tried.len(),
        terminal.ink(Ink::Good, "all as they say")
    ))?;
    Ok(())
}
