//! What the fuzz targets reach. It is there only with the feature `fuzzing`, and no part of what the crate offers.

use domain::{Digest, PluginName, Tool};
use sandbox::Declared;

use crate::finding::Findings;
use crate::rules::{self, Subject};
use crate::{Finding, Settings};

/// Applies every rule about declarations, as a load does with a component that exports `server`.
///
/// # Panics
/// Never: the name is one.
#[must_use]
pub fn judge(declared: &[Declared]) -> (Vec<Finding>, Vec<Tool>) {
    #[expect(clippy::expect_used, reason = "the name is a constant")]
    let plugin = PluginName::new("fuzzed").expect("a name");
    let subject = Subject { plugin: &plugin, component: Digest::of("bytes"), has_server: true, declared };
    let mut findings = Findings::default();
    let tools = rules::judge(&subject, &Settings::new("unused"), &|_| None, &mut findings);
    (findings.into_vec(), tools)
}
