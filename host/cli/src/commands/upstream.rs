//! `upstream`: reviews and accepts the tools of upstream MCP servers.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use domain::{PluginName, tool::Approval};
use serde_json::{Value, json};
use toolgate::config::Config;
use toolgate::upstream::{Change, Changed, Gate, Pins, Review, UpstreamStatus, Upstreams};

use super::Run;
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Review and accept the tools of upstream MCP servers, which run outside the sandbox.
///
/// A host offers only tools whose declaration was accepted. These commands work without a host. They read the configuration, start
/// the server for a moment, and keep what you accept in a file beside the configuration (`toolgate.upstreams.json`).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate upstream list
  toolgate upstream review github         show what github declares and you have not accepted
  toolgate upstream accept github --digest sha256:…       accept exactly what the review showed")]
pub(crate) struct Upstream {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Args)]
struct Options {
    /// The configuration [default: ./toolgate.toml, if it exists]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// List the upstreams of the configuration and their accepted tools
    List {
        #[command(flatten)]
        options: Options,
    },
    /// Start an upstream, and show how its tools differ from the accepted ones
    Review {
        /// The upstream: the name of its table
        name: String,
        #[command(flatten)]
        options: Options,
    },
    /// Accept the tools of an upstream as a review has shown them
    Accept {
        /// The upstream: the name of its table
        name: String,
        /// The digest that the review printed
        #[arg(long)]
        digest: String,
        #[command(flatten)]
        options: Options,
    },
}

impl Run for Upstream {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        match self.command {
            Subcommands::List { options } => list(&options, terminal),
            Subcommands::Review { name, options } => {
                let (_, review) = reviewed(&name, &options)?;
                terminal.line(if options.json {
                    as_json(&name, &review)
                } else {
                    as_text(&name, &review, terminal)
                })?;
                Ok(())
            }
            Subcommands::Accept { name, digest, options } => accept(&name, &digest, &options, terminal),
        }
    }
}

fn list(options: &Options, terminal: &Terminal) -> Result<(), Report> {
    let config = Config::read(options.config.as_deref())?;
    let runtime = super::runtime()?;
    let upstreams = runtime.block_on(async { toolgate::upstreams::configured(&config, None) })?;
    let all = upstreams.status();
    for status in &all {
        terminal.line(if options.json { status_json(status) } else { status_text(status, terminal) })?;
    }
    if all.is_empty() && !options.json {
        terminal.line("the configuration has no upstreams")?;
    }
    Ok(())
}

fn status_json(status: &UpstreamStatus) -> String {
    let UpstreamStatus { plugin, tools, problems, covers_server, origin, .. } = status;
    let problems: serde_json::Map<_, _> =
        problems.iter().map(|(tool, problem)| (tool.clone(), Value::from(problem.to_string()))).collect();
    json!({ "name": plugin.upstream(), "origin": origin, "sandboxed": false, "tools": tools, "not_offered": problems, "covers_server": covers_server })
        .to_string()
}

fn status_text(status: &UpstreamStatus, terminal: &Terminal) -> String {
    let name = terminal.style(Style::Strong, status.plugin.upstream().unwrap_or_default());
    let at = status.origin.as_ref().map(|origin| format!(" at {}", escape::line(origin))).unwrap_or_default();
    let mut lines = vec![format!("{name}  MCP server{at}, outside the sandbox, {} accepted tools", status.tools.len())];
    if !status.covers_server {
        lines.push(
            "    an earlier version wrote this acceptance, which does not cover the command: review it again"
                .to_owned(),
        );
    }
    lines.extend(status.tools.iter().map(|tool| format!("    {}", escape::line(tool))));
    let problem = |(tool, problem): (&String, _)| format!("    {}: {problem}", escape::line(tool));
    lines.extend(status.problems.iter().map(problem));
    lines.join("\n")
}

/// Starts the server, and compares its tools with the accepted ones.
fn reviewed(name: &str, options: &Options) -> Result<(Config, Review), Report> {
    let config = Config::read(options.config.as_deref())?;
    super::hide_from_upstreams(&config)?;
    let supervisor = super::supervisor()?;
    let runtime = super::runtime()?;
    let review = runtime.block_on(async {
        let upstreams: Upstreams = toolgate::upstreams::configured(&config, Some(supervisor))?;
        let plugin = PluginName::of_upstream(name).ok();
        let review = match &plugin {
            Some(plugin) => upstreams.review(plugin).await,
            None => None,
        };
        let unknown = || {
            let message = format!("the configuration has no upstream {}", escape::quoted(name, 80));
            Report::new(Exit::Usage, message).hint("`toolgate upstream list` shows them")
        };
        let review = review.ok_or_else(unknown)?;
        review.map_err(|why| {
            Report::new(Exit::Refused, format!("the MCP server {name} cannot be reviewed")).because(format!("it {why}"))
        })
    })?;
    Ok((config, review))
}

fn accept(name: &str, digest: &str, options: &Options, terminal: &Terminal) -> Result<(), Report> {
    let (config, review) = reviewed(name, options)?;
    if review.digest.to_string() != digest {
        let message = format!("the MCP server {name} does not declare what was reviewed, so nothing is accepted");
        return Err(
            Report::new(Exit::Refused, message).hint(format!("review it again: toolgate upstream review {name}"))
        );
    }
    let pins = Pins::open(config.upstream_pins()).context("cannot accept the tools")?;
    pins.accept(name, review.accepts()).context("cannot accept the tools")?;
    let (count, file) = (review.accepts().count(), pins.path().display().to_string());
    terminal.line(if options.json {
        json!({ "ok": true, "accepted": count, "file": file }).to_string()
    } else {
        format!("accepted {count} tools of the MCP server {name} in {file}; a running host offers them within a second")
    })?;
    Ok(())
}

fn as_json(name: &str, review: &Review) -> String {
    let part = |text: &Option<String>| text.as_deref().map(Value::from).unwrap_or_default();
    let changed = |parts: &[Changed]| -> serde_json::Map<_, _> {
        let pair =
            |(name, old, new): &Changed| ((*name).to_owned(), json!({ "accepted": part(old), "now": part(new) }));
        parts.iter().map(pair).collect()
    };
    let change = |change: &Change| match change {
        Change::Added(parts) => {
            let parts: serde_json::Map<_, _> =
                parts.iter().map(|(part, text)| ((*part).to_owned(), text.as_str().into())).collect();
            json!({ "change": "new", "parts": parts })
        }
        Change::Removed => json!({ "change": "missing" }),
        Change::Changed(parts) => json!({ "change": "changed", "parts": changed(parts) }),
    };
    let gate = |gate: &Gate| {
        let Gate { name, approval, is_repeated, findings } = gate;
        json!({ "name": name, "approval": approval_word(*approval), "repeated": is_repeated, "findings": findings })
    };
    let changes: serde_json::Map<_, _> = review.changes.iter().map(|(tool, it)| (tool.clone(), change(it))).collect();
    let gates: serde_json::Map<_, _> = review.gates.iter().map(|(tool, it)| (tool.clone(), gate(it))).collect();
    let all = json!({
        "name": name,
        "origin": review.origin,
        "sandboxed": false,
        "digest": review.digest.to_string(),
        "server": changed(&review.target),
        "unchanged": review.unchanged,
        "changes": changes,
        "tools": gates,
        "unknown": review.unknown,
    });
    escape::json(&all.to_string())
}

const fn approval_word(approval: Approval) -> &'static str {
    match approval {
        Approval::Auto => "auto",
        Approval::RequiresApproval => "requires-approval",
    }
}

fn as_text(name: &str, review: &Review, terminal: &Terminal) -> String {
    let Review { changes, unchanged, digest, .. } = review;
    let place = match &review.origin {
        None => "with the rights of the host".to_owned(),
        Some(origin) => format!("at {}", escape::line(origin)),
    };
    let mut text =
        format!("The MCP server {name} runs outside the sandbox, {place}. {unchanged} of its tools are as accepted.\n");
    let margin = |mark: &str, text: &str| escape::block(text, &format!("  {mark} ")).trim_end().to_owned() + "\n";
    let parts = |text: &mut String, parts: &[Changed]| {
        for (part, old, new) in parts {
            text.push_str(&format!("  {part}\n"));
            text.extend(old.iter().map(|old| margin("-", old)));
            text.extend(new.iter().map(|new| margin("+", new)));
        }
    };
    if !review.target.is_empty() {
        let change = if review.covers_server { "changed" } else { "not accepted yet" };
        text.push_str(&format!("\n{}: {change}\n", terminal.style(Style::Strong, "the server itself")));
        parts(&mut text, &review.target);
    }
    for (tool, change) in changes {
        let tool = terminal.style(Style::Strong, &escape::line(tool));
        match change {
            Change::Added(added) => {
                text.push_str(&format!("\n{tool}: new\n"));
                for (part, new) in added.iter().filter(|(part, _)| *part != "name") {
                    text.push_str(&format!("  {part}\n{}", margin("+", new)));
                }
            }
            Change::Removed => text.push_str(&format!("\n{tool}: the server no longer declares it\n")),
            Change::Changed(changed) => {
                text.push_str(&format!("\n{tool}: changed\n"));
                parts(&mut text, changed);
            }
        }
    }
    text.push_str(&gates(name, review));
    if review.is_accepted() {
        return text + "\nThere is nothing to accept.";
    }
    text + &format!("\nTo accept exactly this:\n  toolgate upstream accept {name} --digest {digest}")
}

/// The decisions of the configuration about each tool.
fn gates(upstream: &str, review: &Review) -> String {
    let mut text = String::from("\nAs your configuration is now, if you accept them:\n");
    for Gate { name, approval, is_repeated, findings } in review.gates.values() {
        let approval = match approval {
            Approval::RequiresApproval => "requires approval",
            Approval::Auto => "runs without approval",
        };
        let repeated = if *is_repeated { ", is repeated after a kill" } else { "" };
        let what = match findings.as_slice() {
            [] => format!("{approval}{repeated}"),
            findings => format!("cannot be offered: {}", escape::line(&findings.join("; "))),
        };
        text.push_str(&format!("  {}  {what}\n", escape::line(name)));
    }
    for tool in &review.unknown {
        let tool = escape::line(tool);
        text.push_str(&format!(
            "  warning: there is a table [upstream.{upstream}.tools.{tool}], and the server has no tool of this name. A renamed tool does \
             not keep its table\n"
        ));
    }
    text
}
