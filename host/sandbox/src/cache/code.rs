//! The one place where compiled code is loaded, and with it the only use of `unsafe` in this crate.

#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;

use wasmtime::Engine;
use wasmtime::component::Component;

/// Loads compiled code that the caller has authenticated, or that a compiler which it has started itself has just given it.
/// The engine still refuses what another version or configuration of it has made.
///
/// What this trusts is the compiler: machine code runs with the rights of the host, wherever it was made. A process of its
/// own keeps a compiler from spending too much, from crashing the host and from reading its memory and files; it is no
/// defence against one that a component has taken over, because the code that such a compiler hands out is believed.
#[expect(unsafe_code, reason = "loading compiled code is trusting it, and this is where the trust is stated")]
pub(crate) fn load(engine: &Engine, trusted: &[u8]) -> Result<Component, String> {
    // SAFETY: the bytes are in memory, where nobody can change them meanwhile, and they are what `precompile_component`
    // made: `Cache::get` passes bytes whose tag it has verified under a key that this user alone can read, and `Sandbox::compile`
    // what it compiled itself or read from the pipe of a child that runs the host's own program.
    unsafe { Component::deserialize(engine, trusted) }.map_err(|error| format!("{error:#}"))
}

/// The same for code in a file without a name that is sealed. It is not copied: the engine maps the file, and guests map
/// what their memories begin with.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "loading compiled code is trusting it, and this is where the trust is stated")]
pub(super) fn map(engine: &Engine, trusted: &File) -> Result<Component, String> {
    let path = format!("/proc/self/fd/{}", trusted.as_raw_fd());
    // SAFETY: as above, of the bytes of the file: `Cache::get` has verified their tag after the file was sealed, and the
    // seals keep everybody from writing to it, this process included, for as long as anybody has it open or mapped.
    unsafe { Component::deserialize_file(engine, path) }.map_err(|error| format!("{error:#}"))
}
