//! Whether this machine can trace system calls.

use std::process::Command;

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
