//! The parts of `cargo xtask test` with tests that need something of the machine.

use crate::host::say;

/// The variable with which `cargo xtask test --without PART` disables these tests.
const WITHOUT: &str = "TOOLGATE_WITHOUT";

/// A part that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// npm and the registry of npm.
    Web,
    /// The programs that build plugins in each language.
    Languages,
    /// Tracing of system calls.
    Syscalls,
    /// Landlock in the kernel.
    Landlock,
    /// The programs of a PostgreSQL server.
    Postgres,
}

impl Part {
    /// Whether the tests of this part are left out. Prints a line if so.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "an option of `cargo xtask test`")]
    pub fn is_left_out(self) -> bool {
        let name = match self {
            Self::Web => "web",
            Self::Languages => "languages",
            Self::Syscalls => "syscalls",
            Self::Landlock => "landlock",
            Self::Postgres => "postgres",
        };
        let is_left_out = std::env::var(WITHOUT).is_ok_and(|parts| parts.split(',').any(|part| part == name));
        if is_left_out {
            say(&format!("left out: {WITHOUT} names {name}"));
        }
        is_left_out
    }
}
