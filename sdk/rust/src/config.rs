//! What the operator configured for the plugin: wasi:config of the host, or what
//! [`Attempt::config`](crate::testing::Attempt::config) says in a test.
//!
//! The value of a secret is a placeholder. Put it where the secret belongs in a request over [`http`](crate::http) and the
//! host sends the secret in its place, where the operator granted that; nothing else can be done with it.

use crate::Failure;

#[cfg(not(target_family = "wasm"))]
pub(crate) mod values;
#[cfg(not(target_family = "wasm"))]
use values as backend;
#[cfg(target_family = "wasm")]
mod wasi;
#[cfg(target_family = "wasm")]
use wasi as backend;

/// The value of this name, if the operator gave one.
///
/// # Errors
/// `Unavailable` when the host could not look it up.
pub fn get(name: &str) -> Result<Option<String>, Failure> {
    backend::get(name).map_err(|why| Failure::Unavailable(format!("the configuration cannot be read now: {why}")))
}

/// The value of this name, which the tool cannot do without.
///
/// # Errors
/// `Failed` with what the operator would have to configure; and as [`get`].
pub fn required(name: &str) -> Result<String, Failure> {
    get(name)?.ok_or_else(|| Failure::Failed(format!("the operator has not configured `{name}` for this plugin")))
}
