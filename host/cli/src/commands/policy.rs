//! `policy`: explains the operator's rules for a call, and tests rules with their examples.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use domain::step::StepKind;
use domain::{ConversationId, Json, PrincipalId, Tool, ToolName};
use policy::{Arguments, Explanation, Moment, Subject};
use registry::Registry;
use serde_json::json;
use toolgate::config::{Config, SecretValues};

use super::{Run, author};
use crate::args::{self, Connection, not_a_file};
use crate::card;
use crate::client::{Client, parse};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Explain the operator's rules for a call, or test rules with their examples.
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Explain(Box<Explain>),
    Test(Test),
}

/// Explain what the rules decide about a call: each rule, whether it matches, and which one decides.
///
/// Without --url it reads the configuration and the plugins' folder. It does not ask policy components then.
/// With --url it asks a host, which asks those too. Nothing is called.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate policy explain ledger_transfer '{\"amount\":5000}'
  toolgate policy explain ledger_transfer '{\"amount\":5000}' --caller agent-7
  toolgate policy explain roll_out '{}' --step approve
  toolgate policy explain ledger_transfer '{}' --url http://127.0.0.1:7420 --json")]
struct Explain {
    /// The tool
    #[arg(value_name = "TOOL", value_parser = args::tool)]
    tool: ToolName,
    /// The arguments: a JSON object; `@FILE` reads a file, `-` standard input
    #[arg(value_name = "ARGUMENTS", default_value = "{}", value_parser = args::given)]
    arguments: String,
    /// The caller
    #[arg(long, value_name = "NAME", default_value = "agent", value_parser = str::parse::<PrincipalId>)]
    caller: PrincipalId,
    /// The conversation; with --url only
    #[arg(long, value_name = "ID", value_parser = args::conversation, requires = "url")]
    conversation: Option<ConversationId>,
    /// The context of the turn: a JSON object, or `@FILE`; with --url only
    #[arg(long, value_name = "JSON", requires = "url", value_parser = args::given)]
    context: Option<String>,
    /// A step of the call, of this kind: ask, approve or await-external [default: the call as a whole]
    #[arg(long, value_name = "KIND", value_parser = args::step)]
    step: Option<StepKind>,
    /// The folder of plugins, without --url [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

/// Test every rule with its own examples.
///
/// A host does the same when it reads its configuration: it does not start if a rule contradicts its examples.
/// Prints the number of examples of each rule.
#[derive(Debug, Args)]
struct Test {
    /// Print JSON: one object a line for each rule
    #[arg(long)]
    json: bool,
    /// The configuration [default: ./toolgate.toml, if it exists]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Run for Policy {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        match self.command {
            Subcommands::Explain(args) => explain(&args, terminal),
            Subcommands::Test(args) => test(&args, terminal),
        }
    }
}

fn explain(args: &Explain, terminal: &Terminal) -> Result<(), Report> {
    let arguments = object(&args.arguments, "the arguments")?;
    let explained = if args.host.url.is_some() { of_host(args, &arguments)? } else { of_folder(args, arguments)? };
    if args.json {
        terminal.line(escape::json(&serde_json::to_string(&explained)?))?;
        return Ok(());
    }
    terminal.line(as_text(args, &explained, terminal).trim_end())?;
    Ok(())
}

fn object(text: &str, what: &str) -> Result<Json, Report> {
    let wrong = |why: String| {
        Report::new(Exit::Usage, format!("{what} are not a valid JSON object"))
            .because(why)
            .hint("write them like '{\"amount\":5000}'")
    };
    let json = args::checked(text).map_err(|error| wrong(error.to_string()))?;
    if json.as_str().starts_with('{') { Ok(json) } else { Err(wrong("it is another value".to_owned())) }
}

/// The explanation of a host.
fn of_host(args: &Explain, arguments: &Json) -> Result<api::Explanation, Report> {
    let context = args.context.as_deref().map(|context| object(context, "the members of the context")).transpose()?;
    let question = api::Explain {
        tool: args.tool.to_string(),
        arguments: arguments.into(),
        caller: Some(args.caller.to_string()),
        conversation: args.conversation.as_ref().map(ToString::to_string),
        context: context.as_ref().map(Into::into),
        step: args.step.as_ref().map(Into::into),
    };
    let body = serde_json::to_vec(&question)?;
    parse(&Client::new(&args.host)?.post("/v1/policy/explain", &[], &body)?)
}

/// The explanation from the configuration and the plugins' folder.
fn of_folder(args: &Explain, arguments: Json) -> Result<api::Explanation, Report> {
    let mut config = Config::read(args.host.data.config.as_deref())?;
    // This sandbox runs one guest at a time.
    config.pool = NonZeroU32::new(4);
    let folder = args.plugins.clone().unwrap_or_else(|| config.plugins_folder());
    let tool = find(&config, &folder, args.tool.as_str())?;
    let subject = Subject {
        tool: Some(tool.name.as_str()),
        plugin: Some(tool.plugin.as_str()),
        caller: Some(args.caller.as_str()),
        moment: Some(args.step.map_or(Moment::Call, Moment::Step)),
        arguments: Arguments::new(arguments),
    };
    Ok(toolgate::http_api::explanation(&Explanation::of_rules(&config.operator_rules(), &subject, &tool)))
}

/// Finds the tool with this name in the components of a folder.
fn find(config: &Config, folder: &Path, name: &str) -> Result<Tool, Report> {
    not_a_file(folder)?;
    let files = components(folder).with_context(|| format!("cannot read the folder of plugins {}", folder.display()));
    let files =
        files.map_err(|error| Report::from(error).hint("name the folder with --plugins, or ask a host with --url"))?;
    let engine = toolgate::checking_sandbox(config, Some(super::compiler()?), None)?;
    let settings = config.registry(Path::new(""), &SecretValues::default());
    let mut names = Vec::new();
    for file in &files {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let checked = Registry::check(&engine, &settings, &author::plugin_name(file)?, &bytes);
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

fn as_text(args: &Explain, explained: &api::Explanation, terminal: &Terminal) -> String {
    let mut lines = String::new();
    let width = explained.steps.iter().map(|step| escape::line(&step.name).chars().count()).max().unwrap_or_default();
    for step in &explained.steps {
        let (fits, style) = if step.matched { ("fits", Style::Strong) } else { ("    ", Style::Faint) };
        let name = format!("{:width$}", escape::line(&step.name));
        let (rule, name) = (step.rule, terminal.style(style, &name));
        lines.push_str(&format!("{fits}  {rule:5}  {name}  {}\n", escape::line(&step.why)));
    }
    for violation in &explained.invalid {
        lines.push_str(&format!("the call would fail before: {}\n", escape::line(violation)));
    }
    let decided = match &explained.by {
        Some(by) => {
            let reason = explained.reason.as_deref().map(|reason| format!(", because {}", escape::line(reason)));
            format!("{} decides{}", escape::line(by), reason.unwrap_or_default())
        }
        None => format!("no rule decides; the tool declares {}", explained.declared),
    };
    let (style, effect) = match explained.effective {
        api::Effect::Run => (Style::Good, "goes on without a person"),
        api::Effect::Ask => (Style::Open, "asks a person"),
        api::Effect::Deny => (Style::Bad, "is denied"),
    };
    let risk = explained.risk.map(|risk| format!(", at risk {risk}")).unwrap_or_default();
    let effect = terminal.style(style, effect);
    let step = args.step.map(|step| format!("the step {} of ", step.as_str())).unwrap_or_default();
    lines.push_str(&format!("{step}{} by {}: it {effect}{risk}: {decided}\n", args.tool, args.caller));
    for need in &explained.needs {
        let who =
            if need.who.is_empty() { "any principal with the role approver".to_owned() } else { need.who.join(" or ") };
        lines.push_str(&format!("needs {} of {}\n", need.quorum, escape::line(&who)));
        if !need.via.is_empty() {
            lines.push_str(&format!("must be answered through: {}\n", card::names_of(&need.via)));
        }
    }
    lines
}

fn test(args: &Test, terminal: &Terminal) -> Result<(), Report> {
    let config = Config::read(args.config.as_deref())?;
    let tried = config.tried_rules();
    let width = tried.iter().map(|rule| rule.name.chars().count()).max().unwrap_or_default();
    for rule in tried {
        if args.json {
            let value = json!({"rule": rule.name, "matches": rule.matches, "not_matches": rule.not_matches});
            terminal.line(escape::json_line(&value.to_string()))?;
            continue;
        }
        let examples = match (rule.matches, rule.not_matches) {
            (0, 0) => terminal.style(Style::Open, "no examples"),
            (matches, not_matches) => format!("{matches} match, {not_matches} not_match"),
        };
        terminal.line(format!("{:width$}  {examples}", escape::line(&rule.name)))?;
    }
    if args.json {
        return Ok(());
    }
    let examples: usize = tried.iter().map(|rule| rule.matches + rule.not_matches).sum();
    terminal.line(format!(
        "{} rules, {examples} examples: {}",
        tried.len(),
        terminal.style(Style::Good, "all as they say")
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_must_be_one_unambiguous_object() {
        assert_eq!(object(" {\"a\": 1.0}\n", "the arguments").expect("fine").as_str(), "{\"a\": 1.0}");
        for (text, why) in [(r#"{"a":1,"\u0061":2}"#, "duplicate key \"a\""), ("[1]", "it is another value"), ("{", "")]
        {
            let report = format!("{:?}", object(text, "the arguments").expect_err(text));
            assert!(report.contains("the arguments are not a valid JSON object"), "{report}");
            assert!(report.replace("\\\"", "\"").contains(why), "{report}");
        }
    }
}
