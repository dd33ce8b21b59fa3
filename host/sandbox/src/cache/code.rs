//! The one place where compiled code is loaded, and with it the one use of `unsafe` in this crate.

use wasmtime::Engine;
use wasmtime::component::Component;

/// Loads compiled code that the caller has authenticated. The engine still refuses what another version or configuration
/// of it has made.
#[expect(unsafe_code, reason = "loading compiled code is trusting it, and this is where the trust is stated")]
pub(super) fn load(engine: &Engine, authenticated: &[u8]) -> Result<Component, String> {
    // SAFETY: `Cache::get` passes bytes in memory whose tag it has verified under the host's own key, so they are what
    // `Component::serialize` gave this host, and nobody can change them between that check and this call.
    unsafe { Component::deserialize(engine, authenticated) }.map_err(|error| format!("{error:#}"))
}
