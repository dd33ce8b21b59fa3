//! The conformance kit: whether a component of any toolchain is a plugin as hosts and models expect it.
//!
//! ```text
//! bytes ─ Registry::check ─► what it declares ─┬─► samples of arguments: from examples, else from the schemas
//!            │ findings                        └─► runs: each in a sandbox whose clock, randomness and buckets are the kit's
//!            └──────────────► rows: one for each requirement, passed, failed (with a remedy), or skipped (with the reason)
//! ```
//!
//! A component that no host would load is not run. One whose tool does not answer at all is not asked the finer questions, so
//! that one mistake is one row.

mod calls;
mod loading;
mod origin;
mod report;
mod requirement;
mod samples;
mod variations;
mod world;

use std::time::Duration;

use domain::{Digest, PluginName};
use kit::examples::Example;
use registry::{Registry, Settings};
use sandbox::{LoadError, Sandbox};

pub use origin::Toolchain;
pub use report::{Problem, Report, Row, Verdict};
pub use requirement::Requirement;
pub use world::Surroundings;

/// What is looked at.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The name under which it would be loaded.
    pub name: &'a PluginName,
    /// The component.
    pub bytes: &'a [u8],
    /// What it is granted, and its limits.
    pub settings: &'a Settings,
    /// Calls whose end its author knows.
    pub examples: &'a [Example],
    /// How long all calls together may take. What has not been asked by then, is not.
    pub time: Duration,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The host failed, not the component.
    #[error("the host failed to look at it")]
    Host(#[source] std::io::Error),
    /// It passed every rule and did not load.
    #[error("it was checked and could not be loaded: {0}")]
    Load(#[from] LoadError),
}

/// Holds a component to every requirement. `sandbox` is one that was set up with these [`Surroundings`].
///
/// # Errors
/// [`Fault`] where the host fails. The report holds the mistakes of the component.
pub async fn conform(sandbox: &Sandbox, around: &Surroundings, subject: &Subject<'_>) -> Result<Report, Fault> {
    let checked = Registry::check(sandbox, subject.settings, subject.name, subject.bytes).map_err(Fault::Host)?;
    let toolchain = Toolchain::of(subject.bytes);
    let mut report =
        Report::new(toolchain, subject.bytes.len(), checked.tools.iter().map(|tool| tool.name.to_string()));
    loading::rules(&checked, &mut report);
    if !checked.findings.is_empty() {
        report.skip_rest("no host would load it");
        return Ok(report);
    }
    let capabilities = checked.access.effective.capabilities();
    let plugin = sandbox.load(Digest::of(subject.bytes), subject.bytes, capabilities)?;
    loading::constant(&plugin, &mut report).await;
    loading::size(toolchain, subject.bytes.len(), &mut report);
    let world = world::World::new(&plugin, subject, around);
    let judged = calls::judge(&world, &checked.tools, subject.examples, &mut report);
    let in_time = tokio::time::timeout(subject.time, judged).await.is_ok();
    loading::time(in_time, subject.time, world.calls(), &mut report);
    Ok(report)
}
