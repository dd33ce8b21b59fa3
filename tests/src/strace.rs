//! Whether this machine can trace system calls.

use std::process::Command;

/// The variable with which `cargo xtask test --without syscalls` disables the tests that trace.
const WITHOUT: &str = "TOOLGATE_WITHOUT";

/// Whether tests that trace are left out.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "an option of `cargo xtask test`")]
pub fn is_left_out() -> bool {
    std::env::var(WITHOUT).is_ok_and(|parts| parts.split(',').any(|part| part == "syscalls"))
}

/// Checks that tracing works.
///
/// # Panics
/// When this machine does not allow tracing.
pub fn check() {
    let traced = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let traced = traced.is_ok_and(|output| output.status.success());
    assert!(
        traced,
        "strace is missing or may not trace here: run `apt-get install strace`, or leave this test out with \
         `cargo xtask test --without syscalls`"
    );
}
