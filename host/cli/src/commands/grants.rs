//! `grants`: what a plugin wants, what it is granted, what it gets, and the lines that grant what is missing.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use domain::{Digest, PluginName};
use registry::grants::{Standing, Wanted, words};
use registry::{Access, Finding, Holder, Registry};
use serde_json::{Value, json};
use toolgate::config::{Config, PluginTable, SecretValues};

use super::check::plugin_name;
use crate::args::Grants;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

/// What is shown.
struct Shown {
    plugin: PluginName,
    file: PathBuf,
    component: Digest,
    access: Access,
    findings: Vec<Finding>,
    /// What to write into the configuration, if anything is missing, and whether it stands there already.
    lines: Option<String>,
    replaces: bool,
}

pub(super) fn run(args: &Grants, terminal: &Terminal) -> Result<(), Report> {
    let config = Config::read(args.config.as_deref())?;
    let folder = args.plugins.clone().unwrap_or_else(|| config.plugins_folder());
    let (plugin, file) = target(&args.target, &folder)?;
    let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()));
    let bytes =
        bytes.map_err(|error| Report::from(error).hint("name a plugin of the folder, or a component's file"))?;
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
    terminal.line(if args.json { as_json(&shown) } else { as_text(&shown, terminal) })?;
    Ok(())
}

/// The plugin's name and its file.
fn target(target: &str, folder: &Path) -> Result<(PluginName, PathBuf), Report> {
    let file = Path::new(target);
    if file.extension().is_some_and(|extension| extension == "wasm") {
        return Ok((plugin_name(file)?, file.to_owned()));
    }
    let name = PluginName::new(target).map_err(|error| {
        Report::new(Exit::Usage, format!("{target:?} is neither a plugin nor a component's file")).because(error)
    })?;
    let file = folder.join(format!("{name}.wasm"));
    Ok((name, file))
}

/// Whom grants are for, in words.
pub(super) fn holder(holder: &Holder) -> String {
    match holder {
        Holder::AnyComponent => "granted to any component of this name".to_owned(),
        Holder::Components(components) if components.is_empty() => "granted to no component".to_owned(),
        Holder::Components(components) => {
            let list: Vec<_> = components.iter().map(ToString::to_string).collect();
            format!("granted to {}", list.join(", "))
        }
    }
}

fn as_text(shown: &Shown, terminal: &Terminal) -> String {
    let Shown { plugin, file, component, access, .. } = shown;
    let mut text = format!(
        "{}  {}\n  component  {component}\n",
        terminal.ink(Ink::Strong, plugin.as_str()),
        text::line(&file.display().to_string())
    );
    let wanted = access.wanted();
    match &access.manifest {
        None => text.push_str("  wants      does not say: it carries no manifest, and gets what it is granted\n"),
        Some(_) if wanted.is_empty() => text.push_str("  wants      nothing\n"),
        Some(_) => text.push_str("  wants\n"),
    }
    for want in &wanted {
        text.push_str(&wanted_text(want, terminal));
    }
    section(&mut text, "granted", &words(&access.granted));
    if access.granted != sandbox::Grants::default() {
        text.push_str(&format!("    {}\n", holder(&access.holder)));
    }
    section(&mut text, "may use", &words(&access.effective));
    if !access.surplus().is_empty() {
        section(&mut text, "surplus", &access.surplus());
    }
    for finding in &shown.findings {
        let rule = terminal.ink(Ink::Bad, finding.rule.as_str());
        text.push_str(&format!("  [{rule}] {}\n", text::line(&finding.message)));
        text.push_str(&format!("      {}\n", text::line(&finding.remedy)));
    }
    if let Some(lines) = &shown.lines {
        let place = if shown.replaces { format!(", in the place of `[plugin.{plugin}]`") } else { String::new() };
        text.push_str(&format!("\nTo grant what is missing, write into toolgate.toml{place}:\n\n{}", lines.trim_end()));
    }
    text.truncate(text.trim_end().len());
    text
}

fn section(text: &mut String, name: &str, words: &[String]) {
    if words.is_empty() {
        text.push_str(&format!("  {name:<10} nothing\n"));
        return;
    }
    text.push_str(&format!("  {name}\n"));
    for words in words {
        text.push_str(&format!("    {}\n", text::line(words)));
    }
}

/// What is wanted in our words, and why in the plugin's: behind a margin, so that they cannot pass for ours.
fn wanted_text(want: &Wanted, terminal: &Terminal) -> String {
    let ink = match want.standing {
        Standing::Granted => Ink::Good,
        Standing::InPart => Ink::Open,
        Standing::Missing => Ink::Bad,
    };
    let standing = terminal.ink(ink, want.standing.as_str());
    format!("    {} ({standing})\n{}", text::line(&want.what), text::block(&want.why, "      | "))
}

/// What `check` says of grants: what is wanted, and what it may use.
pub(super) fn summary(access: &Access, terminal: &Terminal) -> String {
    let mut text = String::new();
    let wanted = access.wanted();
    if !wanted.is_empty() {
        text.push_str("  wants\n");
    }
    for want in &wanted {
        text.push_str(&wanted_text(want, terminal));
    }
    let effective = words(&access.effective);
    if !effective.is_empty() || !wanted.is_empty() {
        section(&mut text, "may use", &effective);
    }
    text
}

fn as_json(shown: &Shown) -> String {
    let access = &shown.access;
    let findings: Vec<_> = shown.findings.iter().map(finding_json).collect();
    let holder = match &access.holder {
        Holder::AnyComponent => json!("any"),
        Holder::Components(components) => components.iter().map(ToString::to_string).collect(),
    };
    let value = json!({
        "plugin": shown.plugin.as_str(),
        "file": shown.file.to_string_lossy(),
        "component": shown.component.to_string(),
        "granted_to": holder,
        "is_granted_to_this": access.is_holder,
        "has_manifest": access.manifest.is_some(),
        "wanted": wanted_json(access),
        "granted": words(&access.granted),
        "effective": words(&access.effective),
        "replayable": access.effective.is_replayable(),
        "surplus": access.surplus(),
        "findings": findings,
        "lines": shown.lines,
        "replaces": shown.replaces,
    });
    text::json(&value.to_string())
}

/// What is wanted, for programs.
pub(super) fn wanted_json(access: &Access) -> Value {
    let wanted = access.wanted();
    let one = |want: &Wanted| json!({"what": want.what, "why": want.why, "standing": want.standing.as_str()});
    wanted.iter().map(one).collect()
}

/// A finding, for programs.
pub(super) fn finding_json(finding: &Finding) -> Value {
    json!({
        "tool": finding.tool,
        "rule": finding.rule.as_str(),
        "message": finding.message,
        "remedy": finding.remedy,
    })
}
