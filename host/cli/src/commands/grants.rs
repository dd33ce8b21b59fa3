//! `grants`: a plugin's requests and grants, and the lines that grant the rest.

use std::path::{Path, PathBuf};

use clap::Args;
use domain::{Digest, PluginName};
use registry::grants::{GrantState, RequestedGrant, words};
use registry::{Access, Finding, GrantHolder, Registry};
use serde_json::{Value, json};
use toolgate::config::{Config, PluginTable, SecretValues};

use super::{Run, author};
use crate::args::{not_a_file, unread};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Show a plugin's requests and grants, and the lines that grant the rest.
///
/// Works without a host: reads the configuration and the component. Prints the exact lines that grant missing requests, and
/// everything else as comments. Only toolgate.toml grants anything, so add the output to that file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate grants ledger                  a plugin of the plugins' folder
  toolgate grants dist/ledger.wasm        a file that is not in that folder yet
  toolgate grants ledger >> toolgate.toml         if the file has no table of the plugin yet
  toolgate grants ledger --json")]
pub(crate) struct Grants {
    /// A plugin of the folder, or a component's file
    #[arg(value_name = "NAME|FILE")]
    target: String,
    /// The folder of plugins [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// The configuration [default: ./toolgate.toml, if it exists]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The plugin with its requests and grants.
struct Shown {
    plugin: PluginName,
    file: PathBuf,
    component: Digest,
    access: Access,
    findings: Vec<Finding>,
    /// The lines for the configuration that grant missing requests, if any are missing.
    lines: Option<String>,
    /// Whether the lines replace a table that is in the configuration already.
    replaces: bool,
}

impl Run for Grants {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let config = Config::read(self.config.as_deref())?;
        let folder = self.plugins.unwrap_or_else(|| config.plugins_folder());
        let (plugin, file) = target(&self.target, &folder)?;
        not_a_file(&folder)?;
        let hint = "name a plugin of the folder, or a component's file";
        let bytes = std::fs::read(&file).map_err(|error| unread(file.display(), error).hint(hint))?;
        let settings = config.registry(Path::new(""), &SecretValues::default());
        let (access, findings) = Registry::access(&settings, &plugin, &bytes);
        let component = Digest::of(&bytes);
        let existing = config.plugin.iter().find(|(name, _)| name.0 == plugin).map(|(_, table)| table);
        let lines = PluginTable::granting(existing, &access, component);
        let shown = Shown {
            lines: lines.map(|table| table.to_toml(&plugin)),
            replaces: existing.is_some(),
            plugin,
            file,
            component,
            access,
            findings,
        };
        terminal.line(if self.json { as_json(&shown) } else { as_text(&shown, terminal) })?;
        Ok(())
    }
}

/// The plugin's name and its file.
fn target(target: &str, folder: &Path) -> Result<(PluginName, PathBuf), Report> {
    let file = Path::new(target);
    if file.extension().is_some_and(|extension| extension == "wasm") {
        author::not_a_folder(file)?;
        return Ok((author::plugin_name(file)?, file.to_owned()));
    }
    if !folder.join(format!("{target}.wasm")).exists() {
        author::not_a_folder(file)?;
    }
    let name = PluginName::new(target).map_err(|error| {
        Report::new(Exit::Usage, format!("{target:?} is neither a plugin nor a component's file")).because(error)
    })?;
    let file = folder.join(format!("{name}.wasm"));
    Ok((name, file))
}

/// The holder of grants, in words.
pub(super) fn holder(holder: &GrantHolder) -> String {
    match holder {
        GrantHolder::AnyComponent => "granted to any component of this name".to_owned(),
        GrantHolder::Components(components) if components.is_empty() => "granted to no component".to_owned(),
        GrantHolder::Components(components) => {
            let list: Vec<_> = components.iter().map(ToString::to_string).collect();
            format!("granted to {}", list.join(", "))
        }
    }
}

/// A text that may be a part of toolgate.toml: comments, and the missing lines.
fn as_text(shown: &Shown, terminal: &Terminal) -> String {
    let prose = prose(shown, terminal);
    let comments = prose.trim_end().lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n");
    let mut output: String = comments.collect();
    if let Some(lines) = &shown.lines {
        output.push('\n');
        output.push_str(lines);
    }
    output.trim_end().to_owned()
}

fn prose(shown: &Shown, terminal: &Terminal) -> String {
    let Shown { plugin, file, component, access, .. } = shown;
    let mut output = format!(
        "{}  {}\n  component  {component}\n",
        terminal.style(Style::Strong, plugin.as_str()),
        escape::line(&file.display().to_string())
    );
    let requests = access.requested();
    match &access.manifest {
        None => output
            .push_str("  requests   unknown: the component has no manifest; it gets what the configuration grants\n"),
        Some(_) if requests.is_empty() => output.push_str("  requests   nothing\n"),
        Some(_) => output.push_str("  requests\n"),
    }
    for request in &requests {
        output.push_str(&request_text(request, terminal));
    }
    section(&mut output, "granted", &words(&access.granted));
    if access.granted != capabilities::Grants::default() {
        output.push_str(&format!("    {}\n", holder(&access.holder)));
    }
    section(&mut output, "may use", &words(&access.effective));
    if !access.surplus().is_empty() {
        section(&mut output, "surplus", &access.surplus());
    }
    for finding in &shown.findings {
        let rule = terminal.style(Style::Bad, finding.rule.as_str());
        output.push_str(&format!("  [{rule}] {}\n", escape::line(&finding.message)));
        output.push_str(&format!("      {}\n", escape::line(&finding.remedy)));
    }
    if shown.lines.is_some() {
        let where_to = if shown.replaces { format!(" instead of `[plugin.{plugin}]`") } else { String::new() };
        output.push_str(&format!("\nTo grant the missing requests, write into toolgate.toml{where_to}:\n"));
    }
    output
}

fn section(output: &mut String, name: &str, words: &[String]) {
    if words.is_empty() {
        output.push_str(&format!("  {name:<10} nothing\n"));
        return;
    }
    output.push_str(&format!("  {name}\n"));
    for words in words {
        output.push_str(&format!("    {}\n", escape::line(words)));
    }
}

/// A request in our words, and its reason in the plugin's words. The reason has a margin, so that it cannot look like our text.
fn request_text(request: &RequestedGrant, terminal: &Terminal) -> String {
    let style = match request.state {
        GrantState::Granted => Style::Good,
        GrantState::InPart => Style::Open,
        GrantState::Missing | GrantState::Impossible => Style::Bad,
    };
    let standing = terminal.style(style, request.state.as_str());
    let refusal =
        request.refusal.iter().map(|refusal| format!("      {}\n", escape::line(refusal))).collect::<String>();
    format!("    {} ({standing})\n{refusal}{}", escape::line(&request.what), escape::block(&request.why, "      | "))
}

/// The requests and the access, as `check` prints them.
pub(super) fn summary(access: &Access, terminal: &Terminal) -> String {
    let mut output = String::new();
    let requests = access.requested();
    if !requests.is_empty() {
        output.push_str("  requests\n");
    }
    for request in &requests {
        output.push_str(&request_text(request, terminal));
    }
    let effective = words(&access.effective);
    if !effective.is_empty() || !requests.is_empty() {
        section(&mut output, "may use", &effective);
    }
    output
}

fn as_json(shown: &Shown) -> String {
    let access = &shown.access;
    let findings: Vec<_> = shown.findings.iter().map(finding_json).collect();
    let holder = match &access.holder {
        GrantHolder::AnyComponent => json!("any"),
        GrantHolder::Components(components) => components.iter().map(ToString::to_string).collect(),
    };
    let value = json!({
        "plugin": shown.plugin.as_str(),
        "file": shown.file.to_string_lossy(),
        "component": shown.component.to_string(),
        "granted_to": holder,
        "is_granted_to_this": access.is_holder,
        "has_manifest": access.manifest.is_some(),
        "requested": requested_json(access),
        "granted": words(&access.granted),
        "effective": words(&access.effective),
        "replayable": access.effective.is_replayable(),
        "surplus": access.surplus(),
        "findings": findings,
        "lines": shown.lines,
        "replaces": shown.replaces,
    });
    escape::json(&value.to_string())
}

/// The requests, as JSON.
pub(super) fn requested_json(access: &Access) -> Value {
    let requests = access.requested();
    let one = |request: &RequestedGrant| {
        let RequestedGrant { what, why, state, refusal } = request;
        let mut value = json!({"what": what, "why": why, "state": state.as_str()});
        if let Some(refusal) = refusal {
            value["refusal"] = json!(refusal);
        }
        value
    };
    requests.iter().map(one).collect()
}

/// A finding, as JSON.
pub(super) fn finding_json(finding: &Finding) -> Value {
    json!({
        "tool": finding.tool,
        "rule": finding.rule.as_str(),
        "message": finding.message,
        "remedy": finding.remedy,
    })
}
