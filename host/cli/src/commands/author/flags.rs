//! The options `--grant` for a component that a host refuses because it lacks grants.

use registry::{Access, Finding, LoadRule};
use toolgate::config::Grant;

/// What to add to `toolgate call`, in words: `--grant keyvalue`. `None` if no grant is missing.
pub(in crate::commands) fn for_call(findings: &[Finding], access: Option<&Access>) -> Option<String> {
    let ungranted: Vec<_> = findings.iter().filter(|finding| finding.rule == LoadRule::ImportNotGranted).collect();
    let manifest = access.and_then(|access| access.manifest.as_ref().map(|manifest| (manifest, access.held())));
    let (flags, is_all) = match manifest {
        _ if ungranted.is_empty() => return None,
        Some((manifest, held)) => {
            let (grants, is_all) = Grant::missing(manifest, &held);
            (grants.iter().map(ToString::to_string).collect(), is_all)
        }
        // Without a manifest, only the imports say what is missing.
        None => {
            let needs = |word: &str| ungranted.iter().any(|finding| finding.message.contains(&format!("`{word}`")));
            let known = [("keyvalue", "keyvalue"), ("http", "http=URL")];
            let flags: Vec<_> =
                known.into_iter().filter(|(word, _)| needs(word)).map(|(_, flag)| flag.to_owned()).collect();
            let is_all = flags.len() == ungranted.len();
            (flags, is_all)
        }
    };
    let flags = flags.iter().map(|flag| format!("--grant {}", escape::line(flag))).collect::<Vec<_>>().join(" ");
    let rest = "a configuration with --config; `toolgate grants FILE` prints its lines";
    Some(match (flags.is_empty(), is_all) {
        (true, _) => rest.to_owned(),
        (false, true) => flags,
        (false, false) => format!("{flags}, and for the rest {rest}"),
    })
}
