//! The conformance kit tests whether a component of any toolchain meets the expectations of hosts and models.
//!
//! ```text
//! bytes ─ Registry::check ─► declarations ─┬─► sample arguments: from examples, otherwise from the schemas
//!            │ findings                    └─► runs: each in a sandbox with the kit's clock, randomness and buckets
//!            └──────────────► rows: one per requirement: passed, failed (with a remedy) or skipped (with the reason)
//! ```
//!
//! The kit does not run a component that no host would load. It makes no detailed tests of a tool that never answers,
//! so that one mistake is one row.

mod calls;
mod journal;
mod loading;
mod origin;
mod report;
mod requirement;
mod samples;
mod steps;
mod variations;
mod world;

use std::time::Duration;

use domain::{Digest, PluginName};
use kit::examples::Example;
use registry::{Finding, Registry, RegistrySettings};
use sandbox::Sandbox;

pub use origin::Toolchain;
pub use report::{ConformanceReport, Defect, Row, TestResult};
pub use requirement::Requirement;
pub use samples::of as samples;
pub use world::Surroundings;

/// The component to test.
#[derive(Debug)]
pub struct TestedComponent<'a> {
    /// The name under which it would be loaded.
    pub name: &'a PluginName,
    /// The finding about the name of its file, if no host would accept that name.
    pub misnamed: Option<&'a Finding>,
    pub bytes: &'a [u8],
    /// Its grants and limits.
    pub settings: &'a RegistrySettings,
    /// Calls whose results the author knows.
    pub examples: &'a [Example],
    /// The time for all calls together. Later tests are skipped.
    pub time: Duration,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The host failed, not the component.
    #[error("the host failed while it checked the component")]
    Host(#[source] std::io::Error),
}

/// Tests a component against every requirement. The `sandbox` must use these [`Surroundings`].
///
/// # Errors
/// [`Fault`] if the host fails. Mistakes of the component are in the report.
pub async fn conform(
    engine: &Sandbox,
    around: &Surroundings,
    subject: &TestedComponent<'_>,
) -> Result<ConformanceReport, Fault> {
    let checked = Registry::check(engine, subject.settings, subject.name, subject.bytes).map_err(Fault::Host)?;
    let toolchain = Toolchain::of(subject.bytes);
    let mut report =
        ConformanceReport::new(toolchain, subject.bytes.len(), checked.tools.iter().map(|tool| tool.name.to_string()));
    loading::rules(&checked, &mut report);
    if let Some(finding) = subject.misnamed {
        loading::misnamed(finding, &mut report);
    }
    if !checked.findings.is_empty() {
        report.skip_rest("no host would load it");
        return Ok(report);
    }
    let granted = checked.access.effective.capabilities();
    let plugin = match engine.load(Digest::of(subject.bytes), subject.bytes, granted) {
        Ok(plugin) => plugin,
        // It loaded a moment ago, and compiling it again took too long.
        Err(error) => {
            loading::refused(&registry::refusal(error).map_err(Fault::Host)?, &mut report);
            report.skip_rest("no host would load it");
            return Ok(report);
        }
    };
    loading::constant(&plugin, &subject.settings.catalog, &mut report).await;
    loading::size(toolchain, subject.bytes.len(), &mut report);
    let world = world::World::new(&plugin, subject, around);
    let tested = calls::test(&world, &checked.tools, subject.examples, &mut report);
    let in_time = tokio::time::timeout(subject.time, tested).await.is_ok();
    loading::time(in_time, subject.time, world.calls(), &mut report);
    Ok(report)
}
