//! The one place that loads compiled code, which is unsafe.

#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;

use wasmtime::Engine;
use wasmtime::component::Component;

/// Loads compiled code that the caller has authenticated, or that a compiler has just made which the caller started itself.
/// The engine still refuses code of another version or configuration.
///
/// This trusts the compiler: machine code runs with the rights of the host. A separate process keeps a compiler from using
/// too much, from crashing the host and from reading its memory and files. It does not protect against a compiler that a
/// component has taken over, because the host runs the code of that compiler.
#[expect(unsafe_code, reason = "loading compiled code is trusting it, and this is where the trust is stated")]
pub(crate) fn load(engine: &Engine, trusted: &[u8]) -> Result<Component, String> {
    // SAFETY: nobody can change the bytes in memory, and `precompile_component` made them: `Cache::get` passes bytes whose
    // tag it has verified under a key that only this user can read, and `Sandbox::compile` passes its own result or reads
    // it from the pipe of a child that runs the host's own program.
    unsafe { Component::deserialize(engine, trusted) }.map_err(|error| format!("{error:#}"))
}

/// The same for code in a sealed file without a name. It is not copied: the engine maps the file, and guests map the
/// initial content of their memories.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "loading compiled code is trusting it, and this is where the trust is stated")]
pub(super) fn map(engine: &Engine, trusted: &File) -> Result<Component, String> {
    let path = format!("/proc/self/fd/{}", trusted.as_raw_fd());
    // SAFETY: as above, for the bytes of the file: `Cache::get` has verified their tag after the file was sealed, and the
    // seals prevent all writes, also by this process, while the file is open or mapped.
    unsafe { Component::deserialize_file(engine, path) }.map_err(|error| format!("{error:#}"))
}
