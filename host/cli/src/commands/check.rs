//! `check`: the findings with which a host would refuse components.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use domain::{Digest, PluginName};
use registry::grants::words;
use registry::{CheckReport, Finding, LoadRule, Registry};
use sandbox::Sandbox;
use serde_json::json;
use toolgate::config::{Config, Grant, SecretValues};

use super::{Run, author, grants};
use crate::args::Cache;
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// Check whether a host would load components.
///
/// Prints all findings at once, each with the tool, the rule and what to change. A host finds the same. A file that cannot be
/// checked does not keep the others from it. The exit code is 1 if there is a finding, and 2 if a file cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate check target/wasm32-wasip2/release/hello.wasm
  toolgate check ledger.wasm --grant keyvalue
  toolgate check plugins/*.wasm --json")]
pub(crate) struct Check {
    /// The components
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Grant an access, as the operator would: keyvalue, or http=URL
    #[arg(long, value_name = "ACCESS")]
    grant: Vec<Grant>,
    /// Check against the grants, limits and policy of this configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON: one object for each file
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cache: Cache,
}

impl Run for Check {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let mut config = Config::read(self.config.as_deref())?;
        // This sandbox runs one guest at a time.
        config.pool = NonZeroU32::new(4);
        let engine = toolgate::checking_sandbox(&config, Some(super::compiler()?), self.cache.compiled())?;
        let mut owners: BTreeMap<String, PluginName> = BTreeMap::new();
        let mut worst = None;
        for file in &self.files {
            let output = match self.checked(file, &config, &engine, &mut owners) {
                Ok(checked) => {
                    worst = worst.max((!checked.findings.is_empty()).then_some(Exit::Refused));
                    Some(if self.json { as_json(file, &checked) } else { as_text(file, &checked, terminal) })
                }
                // The other files are checked all the same.
                Err(report) => {
                    worst = worst.max(Some(report.exit()));
                    if self.json {
                        let mut error = report.as_json();
                        error["file"] = file.to_string_lossy().into();
                        Some(escape::json_line(&error.to_string()))
                    } else {
                        report.print(terminal);
                        None
                    }
                }
            };
            output.map(|output| terminal.line(output)).transpose()?;
        }
        worst.map_or(Ok(()), |worst| Err(Report::silent(worst)))
    }
}

impl Check {
    fn checked(
        &self,
        file: &Path,
        config: &Config,
        engine: &Sandbox,
        owners: &mut BTreeMap<String, PluginName>,
    ) -> Result<Checked, Report> {
        author::not_a_folder(file)?;
        let bytes = match registry::read_component(file) {
            Ok(Some(bytes)) => bytes,
            // There is no such file, and this says so.
            Ok(None) => author::component(file)?,
            Err(unreadable) => return Ok(Checked { findings: vec![unreadable], report: None }),
        };
        let (name, misnamed) = author::tested_name(file)?;
        let is_plugin = misnamed.is_none();
        let mut findings: Vec<_> = misnamed.into_iter().collect();
        let mut config = config.clone();
        if !self.grant.is_empty() {
            config.grant_to(name.clone(), Digest::of(&bytes), &self.grant);
        }
        let settings = config.registry(Path::new(""), &SecretValues::default());
        let checked = Registry::check(engine, &settings, &name, &bytes).context("the host failed to check it");
        let mut report = checked?;
        findings.append(&mut report.findings);
        if is_plugin {
            findings.extend(taken(&report, &name, owners));
        }
        Ok(Checked { findings, report: Some(report) })
    }
}

/// A file that was checked.
struct Checked {
    /// About the file and about its component.
    findings: Vec<Finding>,
    /// The rest of the report. `None` if the component was not checked.
    report: Option<CheckReport>,
}

/// The findings about tools whose names a plugin has that was checked before.
fn taken(report: &CheckReport, name: &PluginName, owners: &mut BTreeMap<String, PluginName>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in &report.tools {
        if let Some(owner) = owners.get(tool.name.as_str()).filter(|owner| *owner != name) {
            findings.push(Finding {
                tool: Some(tool.name.to_string()),
                rule: LoadRule::ToolNameTaken,
                capability: None,
                message: format!("the plugin {owner}, which is checked with it, has a tool of the same name"),
                remedy: "rename one of the two tools".into(),
            });
        } else {
            owners.insert(tool.name.to_string(), name.clone());
        }
    }
    findings
}

fn as_json(file: &Path, Checked { findings, report }: &Checked) -> String {
    let findings: Vec<_> = findings.iter().map(grants::finding_json).collect();
    let Some(report) = report else {
        let value = json!({ "file": file.to_string_lossy(), "ok": false, "findings": findings });
        return escape::json(&value.to_string());
    };
    let tools: Vec<_> = report.tools.iter().map(|tool| tool.name.as_str()).collect();
    let value = json!({
        "file": file.to_string_lossy(),
        "component": report.component.to_string(),
        "ok": findings.is_empty(),
        "built_against": report.built_against,
        "packed": report.is_packed,
        "requested": grants::requested_json(&report.access),
        "granted": words(&report.access.granted),
        "effective": words(&report.access.effective),
        "tools": tools,
        "findings": findings,
        "notes": author::notes_json(&report.notes),
    });
    escape::json(&value.to_string())
}

fn as_text(file: &Path, Checked { findings, report }: &Checked, terminal: &Terminal) -> String {
    let file = escape::line(&file.to_string_lossy()).into_owned();
    let built = report.as_ref().and_then(|report| report.built_against.as_ref());
    let against = built.map_or_else(String::new, |built| format!("  built against {built}\n"));
    let access = report.as_ref().map_or_else(String::new, |report| grants::summary(&report.access, terminal));
    let notes = report.as_ref().map_or_else(String::new, |report| author::notes(&report.notes, terminal));
    if findings.is_empty() {
        let tools: Vec<_> = report
            .iter()
            .flat_map(|report| &report.tools)
            .map(|tool| format!("{} ({}, {})", tool.name, tool.executor.as_str(), tool.approval.as_str()))
            .collect();
        let mut output = format!("{} {file}: {}\n", terminal.style(Style::Good, "fine"), tools.join(", "));
        output.push_str(&against);
        output.push_str(&access);
        output.push_str(&notes);
        return output.trim_end().to_owned();
    }
    let mut output = format!("{} {file}: {}\n", terminal.style(Style::Bad, "refused"), count(findings.len()));
    for finding in findings {
        let about = finding.tool.as_ref().map_or_else(String::new, |tool| format!("tool {tool}: "));
        let rule = terminal.style(Style::Strong, finding.rule.as_str());
        output.push_str(&format!("  [{rule}] {}\n", escape::line(&format!("{about}{}", finding.message))));
        output.push_str(&format!("      {}\n", escape::line(&finding.remedy)));
    }
    output.push_str(&against);
    output.push_str(&access);
    output.push_str(&notes);
    output.trim_end().to_owned()
}

fn count(findings: usize) -> String {
    match findings {
        1 => "1 finding".into(),
        several => format!("{several} findings"),
    }
}
