//! The requirements that need no call: the rules for loading, and the cost of loading.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{CatalogLimits, Limits, tool::Executor};
use registry::{CheckReport, Finding, LoadRule};
use sandbox::Plugin;

use crate::report::{ConformanceReport, Defect};
use crate::{Requirement, Toolchain};

/// Reports a host's findings, each under its requirement.
pub(crate) fn rules(checked: &CheckReport, report: &mut ConformanceReport) {
    let first = [Requirement::Interface, Requirement::Imports];
    let declared = [Requirement::Declares, Requirement::Schemas];
    let unreadable = |finding: &Finding| finding.rule == LoadRule::InvalidComponent;
    // Without a readable interface, neither can be checked.
    if checked.built_against.is_some() || !checked.findings.iter().any(unreadable) {
        first.iter().for_each(|requirement| report.looked(*requirement));
    }
    if !checked.tools.is_empty() {
        declared.iter().for_each(|requirement| report.looked(*requirement));
    }
    if checked.is_packed {
        report.looked(Requirement::Packed);
    } else {
        report.skip(Requirement::Packed, "it has no declaration; `toolgate pack FILE` writes one");
    }
    refused(&checked.findings, report);
    if checked.findings.is_empty() && !checked.notes.is_empty() {
        let notes: Vec<_> = checked.notes.iter().map(ToString::to_string).collect();
        report.note(Requirement::Loads, notes.join("; "));
    }
    if checked.findings.is_empty() && checked.tools.is_empty() {
        report.fail(Requirement::Declares, "it declares no tool", "return at least one tool from `catalog.tools`");
    }
}

/// Reports the name of the file as a finding of its own.
pub(crate) fn misnamed(finding: &Finding, report: &mut ConformanceReport) {
    report.fail(about(finding.rule), finding.message.clone(), finding.remedy.clone());
}

/// Reports the findings with which a host refuses the component. `loads` passes only without any. It fails if a finding is about
/// nothing else, and names the other rows otherwise, so that one mistake is one row.
pub(crate) fn refused(findings: &[Finding], report: &mut ConformanceReport) {
    let mut rows = BTreeSet::new();
    for finding in findings {
        let requirement = about(finding.rule);
        let mut remedy = finding.remedy.clone();
        if let Some(flag) = report.toolchain.to_leave_out(&finding.message) {
            remedy.push_str(&format!("; {flag}"));
        }
        report.problem(requirement, Defect { tool: finding.tool.clone(), what: finding.message.clone(), remedy });
        rows.insert(format!("`{}`", requirement.as_str()));
    }
    if findings.is_empty() {
        report.looked(Requirement::Loads);
    } else {
        let rows = Vec::from_iter(rows).join(", ");
        report.skip(Requirement::Loads, &format!("a host refuses it, and this says why: {rows}"));
    }
}

fn about(rule: LoadRule) -> Requirement {
    match rule {
        LoadRule::PluginName
        | LoadRule::ComponentFile
        | LoadRule::InvalidComponent
        | LoadRule::ComponentStructure
        | LoadRule::CompileCost
        | LoadRule::NeedsReview
        | LoadRule::Settings => Requirement::Loads,
        LoadRule::UnknownInterface => Requirement::Interface,
        LoadRule::ImportNotGranted => Requirement::Imports,
        LoadRule::DeclarationMissing | LoadRule::DeclarationForm | LoadRule::DeclarationDiffers => Requirement::Packed,
        LoadRule::SchemaInvalid
        | LoadRule::SchemaNotObject
        | LoadRule::SchemaRemote
        | LoadRule::SchemaCycle
        | LoadRule::SchemaSize
        | LoadRule::SchemaDepth => Requirement::Schemas,
        _ => Requirement::Declares,
    }
}

/// Asks for the declaration twice, each time in a new instance.
pub(crate) async fn constant(plugin: &Plugin, limits: &CatalogLimits, report: &mut ConformanceReport) {
    let (one, two) = (plugin.declarations(limits).await, plugin.declarations(limits).await);
    report.looked(Requirement::Constant);
    if one != two {
        report.fail(
            Requirement::Constant,
            "`catalog.tools` gave two different answers",
            "build the declaration from constants: no clock, no randomness, no order of a hash table",
        );
    }
}

/// Compares the size with the usual size.
pub(crate) fn size(toolchain: Toolchain, size: usize, report: &mut ConformanceReport) {
    let max = toolchain.usual().size;
    report.note(Requirement::Size, format!("{}, of {toolchain}", shown(size)));
    if size > max {
        report.fail(
            Requirement::Size,
            format!("it has {}; {toolchain} usually needs at most {}", shown(size), shown(max)),
            toolchain.to_be_smaller(),
        );
    }
}

/// Checks the time before a tool starts, and the memory of the smallest call.
pub(crate) fn cost(
    toolchain: Toolchain,
    limits: &Limits,
    start: Duration,
    memory: usize,
    report: &mut ConformanceReport,
) {
    let usual = toolchain.usual();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    report.note(Requirement::Start, format!("{:.1} ms until it refuses an unknown tool", millis(start)));
    if start > usual.start {
        report.fail(
            Requirement::Start,
            format!("it took {:.0} ms; {toolchain} usually needs at most {:.0}", millis(start), millis(usual.start)),
            "every call starts a new instance: do less before the tool is called",
        );
    }
    let max = usual.memory.min(limits.memory / 4 * 3);
    let figure = format!("{} for its smallest call, of {} allowed", shown(memory), shown(limits.memory));
    report.note(Requirement::Memory, figure);
    if memory > max {
        report.fail(
            Requirement::Memory,
            format!("its smallest call took {}; at most {} is usual", shown(memory), shown(max)),
            toolchain.to_reserve_less(),
        );
    }
}

/// Whether the kit finished within its time, `max`.
pub(crate) fn time(in_time: bool, max: Duration, calls: u64, report: &mut ConformanceReport) {
    if in_time {
        if calls > 0 {
            report.note(Requirement::Time, format!("{calls} calls"));
        }
        return;
    }
    report.skip_rest("the kit ran out of time");
    report.fail(Requirement::Time, format!(
                "the kit ran out of time after {} s, in call {calls}; passed requirements were not tested fully, the rest not at all",
                max.as_secs()
            ), "do less in a call, or give the kit more time (`--seconds`)");
}

/// Whether the component itself runs the tool.
pub(crate) fn is_run(tool: &domain::Tool) -> bool {
    tool.executor == Executor::Server
}

/// A size for people.
fn shown(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{}.{} MiB", bytes >> 20, (bytes >> 10 & 1023) * 10 / 1024),
    }
}
