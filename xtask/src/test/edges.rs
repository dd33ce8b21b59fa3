//! Forbidden edges between crates, direct or indirect, over the whole tree of dependencies.
//!
//! `tests/tests/tidy.rs` checks the direct edges in the manifests as well; this also sees an edge that a dependency
//! brings.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::console;
use crate::workspace::Invocation;

/// Crates with the crates that must not be in their trees, and why.
const FORBIDDEN: [(&str, &[&str], &str); 14] = [
    (
        "toolgate-domain",
        &["tokio", "futures", "async-trait", "serde", "serde_json", "uuid"],
        "the domain is values and rules: no I/O, no clock, no wire format",
    ),
    (
        "toolgate-text",
        &["tokio", "serde", "serde_json", "toolgate-domain"],
        "every crate that shows text depends on this one, so it depends on none of them",
    ),
    (
        "toolgate-dispatch",
        &["wasmtime", "wasmtime-wasi", "sled", "axum", "toolgate-store", "toolgate-sandbox", "toolgate-server"],
        "the loop knows its ports, and no implementation of them",
    ),
    (
        "toolgate-store",
        &["wasmtime", "axum", "toolgate-sandbox", "toolgate-registry", "toolgate-server"],
        "edges do not know each other",
    ),
    (
        "toolgate-capabilities",
        &[
            "sled",
            "axum",
            "toolgate-dispatch",
            "toolgate-store",
            "toolgate-sandbox",
            "toolgate-registry",
            "toolgate-server",
        ],
        "a capability sees a call through a view, and not the sandbox that runs it",
    ),
    (
        "toolgate-sandbox",
        &["sled", "axum", "toolgate-dispatch", "toolgate-store", "toolgate-registry", "toolgate-server"],
        "the sandbox runs guests and knows neither the loop nor the store",
    ),
    (
        "toolgate-policy",
        &["wasmtime", "sled", "axum", "toolgate-sandbox", "toolgate-store", "toolgate-registry", "toolgate-server"],
        "rules are values, and a dynamic policy is behind a trait",
    ),
    (
        "toolgate-webhook",
        &["wasmtime", "sled", "axum", "toolgate-sandbox", "toolgate-store", "toolgate-registry", "toolgate-server"],
        "edges do not know each other",
    ),
    (
        "toolgate-console",
        &["wasmtime", "sled", "toolgate-domain", "toolgate-dispatch", "toolgate-server"],
        "the console consists of files and reads its data from the API",
    ),
    (
        "toolgate-kit",
        &["wasmtime", "sled", "axum", "tokio", "toolgate-domain", "toolgate-dispatch", "toolgate-registry"],
        "a component is built without a host",
    ),
    (
        "toolgate-registry",
        &["sled", "axum", "toolgate-store", "toolgate-server"],
        "edges do not know each other, save that the registry runs the sandbox",
    ),
    (
        "toolgate-api",
        &["wasmtime", "sled", "axum", "hyper", "toolgate-store", "toolgate-sandbox", "toolgate-registry"],
        "the API is types: who serves it and who reads it both depend on it",
    ),
    (
        "toolgate-server",
        &["wasmtime", "sled", "toolgate-store", "toolgate-sandbox", "toolgate-registry"],
        "edges do not know each other",
    ),
    (
        "toolgate",
        &[
            "clap",
            "axum",
            "tracing-subscriber",
            "toolgate-server",
            "toolgate-kit",
            "toolgate-conform",
            "toolgate-console",
            "toolgate-cli",
        ],
        "the library that people embed has no command line and, without its feature `server`, no HTTP server",
    ),
];

/// Checks every row.
pub(crate) fn check() -> Result<()> {
    for (package, forbidden, reason) in FORBIDDEN {
        let line = format!("cargo tree --locked -p {package} -e normal --prefix none --format {{p}}");
        let tree = Invocation::new(&line).output()?;
        let known: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        let found: Vec<&str> = forbidden.iter().copied().filter(|name| known.contains(name)).collect();
        if let Some(first) = found.first() {
            bail!(
                "{package} depends on {}: {reason}. To see by which way:\n  cargo tree -p {package} -e normal -i {first}",
                found.join(", ")
            );
        }
        console::line(&format!("{package:<18} {:>3} crates, none of the {} forbidden", known.len(), forbidden.len()));
    }
    Ok(())
}
