//! Entry points for the fuzz targets. They exist only with the feature `fuzzing` and are not part of the crate's API.

use domain::{Digest, PluginName, Tool};
use sandbox::Declared;

use crate::declaration::Declaration;
use crate::finding::Findings;
use crate::rules::{self, Subject};
use crate::{Finding, RegistrySettings};

/// Checks declarations against every rule, as a load of a component that exports `server` does.
///
/// # Panics
/// Never: the name is valid.
#[must_use]
pub fn decide(declared: &[Declared]) -> (Vec<Finding>, Vec<Tool>) {
    #[expect(clippy::expect_used, reason = "the name is a constant")]
    let plugin = PluginName::new("fuzzed").expect("a name");
    let settings = RegistrySettings::new("unused");
    let (component, limits) = (Digest::of("bytes"), &settings.catalog);
    let subject = Subject { plugin: &plugin, component, has_server: true, declared, limits };
    let mut findings = Findings::default();
    let tools = rules::check(&subject, &settings, &|_| None, &mut findings);
    (findings.into_vec(), tools)
}

/// Reads the content of a section, and writes it again.
///
/// # Errors
/// The findings about it.
pub fn declaration(content: &[u8]) -> Result<Vec<u8>, Vec<Finding>> {
    let mut findings = Findings::default();
    let read = Declaration::read(content, &mut findings);
    read.map(|declaration| declaration.write()).ok_or_else(|| findings.into_vec())
}
