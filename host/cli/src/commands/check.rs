//! `check`: what keeps components from being loaded, as a host would find it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use anyhow::Context as _;
use domain::{Digest, PluginName};
use registry::grants::words;
use registry::{CheckReport, Finding, LoadRule, Registry, Settings};
use sandbox::Sandbox;
use serde_json::json;
use toolgate::config::{Config, SecretValues};

use super::{author, grants};
use crate::args::Check;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

pub(super) fn run(args: &Check, terminal: &Terminal) -> Result<(), Report> {
    let mut config = Config::read(args.config.as_deref())?;
    // One guest at a time is all that this sandbox will ever run.
    config.pool = NonZeroU32::new(4);
    let sandbox = toolgate::checking_sandbox(&config, Some(super::compiler()?), args.cache.compiled());
    let sandbox = sandbox.map_err(anyhow::Error::from)?;
    let mut owners: BTreeMap<String, PluginName> = BTreeMap::new();
    let mut refused = false;
    for file in &args.files {
        let name = plugin_name(file)?;
        let bytes = author::component(file)?;
        let mut config = config.clone();
        if !args.grant.is_empty() {
            config.grant_to(name.clone(), Digest::of(&bytes), &args.grant);
        }
        let settings = config.registry(Path::new(""), &SecretValues::default());
        let report = check(&sandbox, &settings, &name, &bytes, &mut owners)?;
        refused |= !report.findings.is_empty();
        terminal.line(if args.json { as_json(file, &report) } else { as_text(file, &report, terminal) })?;
    }
    if refused { Err(Report::said(Exit::Refused)) } else { Ok(()) }
}

/// The name that a host would give the plugin: that of its file.
pub(super) fn plugin_name(file: &Path) -> Result<PluginName, Report> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    PluginName::new(&stem).map_err(|error| {
        Report::new(Exit::Usage, format!("{} cannot be a plugin's file", file.display()))
            .because(error)
            .hint("a plugin is named after its file; rename the file")
    })
}

fn check(
    sandbox: &Sandbox,
    settings: &Settings,
    name: &PluginName,
    bytes: &[u8],
    owners: &mut BTreeMap<String, PluginName>,
) -> anyhow::Result<CheckReport> {
    let mut report = Registry::check(sandbox, settings, name, bytes).context("the host failed to check it")?;
    for tool in &report.tools {
        if let Some(owner) = owners.get(tool.name.as_str()).filter(|owner| *owner != name) {
            report.findings.push(Finding {
                tool: Some(tool.name.to_string()),
                rule: LoadRule::ToolNameTaken,
                message: format!("the plugin {owner}, checked with it, has a tool of this name"),
                remedy: "rename one of the two".into(),
            });
        } else {
            owners.insert(tool.name.to_string(), name.clone());
        }
    }
    Ok(report)
}

fn as_json(file: &Path, report: &CheckReport) -> String {
    let findings: Vec<_> = report.findings.iter().map(grants::finding_json).collect();
    let tools: Vec<_> = report.tools.iter().map(|tool| tool.name.as_str()).collect();
    let value = json!({
        "file": file.to_string_lossy(),
        "component": report.component.to_string(),
        "ok": findings.is_empty(),
        "built_against": report.built_against,
        "packed": report.is_packed,
        "wanted": grants::wanted_json(&report.access),
        "granted": words(&report.access.granted),
        "effective": words(&report.access.effective),
        "tools": tools,
        "findings": findings,
    });
    text::json(&value.to_string())
}

fn as_text(file: &Path, report: &CheckReport, terminal: &Terminal) -> String {
    let file = text::line(&file.to_string_lossy()).into_owned();
    let against = report.built_against.as_ref().map_or_else(String::new, |built| format!("  built against {built}\n"));
    if report.findings.is_empty() {
        let tools: Vec<_> = report
            .tools
            .iter()
            .map(|tool| format!("{} ({}, {})", tool.name, tool.executor.as_str(), tool.approval.as_str()))
            .collect();
        let mut text = format!("{} {file}: {}\n", terminal.ink(Ink::Good, "fine"), tools.join(", "));
        text.push_str(&against);
        text.push_str(&grants::summary(&report.access, terminal));
        text.truncate(text.trim_end().len());
        return text;
    }
    let mut text = format!("{} {file}: {}\n", terminal.ink(Ink::Bad, "refused"), count(report));
    for finding in &report.findings {
        let about = finding.tool.as_ref().map_or_else(String::new, |tool| format!("tool {tool}: "));
        let rule = terminal.ink(Ink::Strong, finding.rule.as_str());
        text.push_str(&format!("  [{rule}] {}\n", text::line(&format!("{about}{}", finding.message))));
        text.push_str(&format!("      {}\n", text::line(&finding.remedy)));
    }
    text.push_str(&against);
    text.push_str(&grants::summary(&report.access, terminal));
    text.truncate(text.trim_end().len());
    text
}

fn count(report: &CheckReport) -> String {
    match report.findings.len() {
        1 => "1 finding".into(),
        several => format!("{several} findings"),
    }
}
