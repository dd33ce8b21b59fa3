//! The options `--grant` for a component that a host refuses because it lacks grants.

use std::collections::BTreeSet;

use capabilities::Capability;
use registry::grants::GrantState;
use registry::{Access, Finding, LoadRule};
use toolgate::config::Grant;

/// What to add to `toolgate call`, in words: `--grant keyvalue`. `None` if no grant is missing, or grants are not enough.
pub(in crate::commands) fn for_call(findings: &[Finding], access: Option<&Access>) -> Option<String> {
    let ungranted = findings.iter().filter(|finding| finding.rule == LoadRule::ImportNotGranted);
    let missing: BTreeSet<Capability> = ungranted.map(|finding| finding.capability).collect::<Option<_>>()?;
    let is_impossible = |access: &Access| access.requested().iter().any(|ask| ask.state == GrantState::Impossible);
    if missing.is_empty() || access.is_some_and(is_impossible) {
        return None;
    }
    let manifest = access.and_then(|access| access.manifest.as_ref().map(|manifest| (manifest, access.held())));
    let (flags, is_all) = if let Some((manifest, held)) = manifest {
        if !missing.iter().all(|capability| manifest.requests_any(*capability)) {
            return None;
        }
        let (grants, is_all) = Grant::missing(manifest, &held);
        (grants.iter().map(ToString::to_string).collect(), is_all)
    } else {
        // Without a manifest, only the imports say what is missing.
        let flag = |capability: &Capability| match capability {
            Capability::KeyValue => Some("keyvalue".to_owned()),
            Capability::Http => Some("http=URL".to_owned()),
            Capability::Config | Capability::Filesystem | Capability::Calls => None,
        };
        let flags: Vec<_> = missing.iter().filter_map(flag).collect();
        let is_all = flags.len() == missing.len();
        (flags, is_all)
    };
    let flags = flags.iter().map(|flag| format!("--grant {}", escape::line(flag))).collect::<Vec<_>>().join(" ");
    let rest = "a configuration with --config; `toolgate grants FILE` prints its lines";
    Some(match (flags.is_empty(), is_all) {
        (true, _) => rest.to_owned(),
        (false, true) => flags,
        (false, false) => format!("{flags}, and for the rest {rest}"),
    })
}
