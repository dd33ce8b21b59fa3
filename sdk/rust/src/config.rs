//! The operator's configuration for the plugin: wasi:config of the host, or the values of
//! [`Attempt::config`](crate::testing::Attempt::config) in a test.
//!
//! The value of a secret is a placeholder. Put it into a request over [`http`](crate::http) at the place of the secret.
//! The host replaces it there if the operator granted that. It has no other use.

use crate::Failure;

#[cfg(not(target_family = "wasm"))]
pub(crate) mod values;
#[cfg(not(target_family = "wasm"))]
use values as backend;
#[cfg(target_family = "wasm")]
mod wasi;
#[cfg(target_family = "wasm")]
use wasi as backend;

/// The value with this name, if the operator configured one.
///
/// # Errors
/// `Unavailable` if the host could not read it.
pub fn get(name: &str) -> Result<Option<String>, Failure> {
    backend::get(name).map_err(|why| Failure::Unavailable(format!("the configuration cannot be read now: {why}")))
}

/// The value with this name, if the tool needs one.
///
/// # Errors
/// `Failed`, with the name that the operator has to configure. Otherwise as [`get`].
pub fn required(name: &str) -> Result<String, Failure> {
    get(name)?.ok_or_else(|| Failure::Failed(format!("the operator has not configured `{name}` for this plugin")))
}
