//! The program that compiles components, and its limits.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use sandbox::{ChildCompiler, Compiler};
#[cfg(feature = "server")]
use sandbox::{Confinement, Landlock, Sandbox};

use crate::config::CompileTable;

/// A program that compiles components. Each component gets its own process with limits on time and memory.
///
/// The program must pass the arguments after its own to [`compile_child`](crate::compile_child) before it does anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerProgram {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

impl CompilerProgram {
    /// This program, run again with these arguments. On Linux this is the running file, even if it was replaced on disk.
    ///
    /// # Errors
    /// When the file of this program cannot be found.
    pub fn itself(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> io::Result<Self> {
        let linked = Path::new("/proc/self/exe");
        let program = if linked.exists() { linked.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// The compiler of a host: a child process if there is a program for it.
pub(crate) fn compiler(program: Option<CompilerProgram>, table: &CompileTable) -> Compiler {
    match program {
        None => Compiler::InProcess,
        Some(CompilerProgram { program, arguments }) => {
            Compiler::Child(ChildCompiler { program, arguments, bounds: table.bounds() })
        }
    }
}

/// How a host compiles. Starts its compiler once to see how the kernel confines it, and logs it.
#[cfg(feature = "server")]
pub(crate) async fn status(engine: Sandbox) -> api::CompilerStatus {
    let probe = move || engine.confinement().map_err(|error| format!("{error:#}"));
    let probed = tokio::task::spawn_blocking(probe).await.unwrap_or_else(|error| Err(error.to_string()));
    match &probed {
        Err(error) => tracing::error!(error, "the compiler cannot be started, so new components cannot be loaded"),
        Ok(None) => {}
        Ok(Some(Confinement { landlock: Landlock::Full, seccomp: true })) => {
            tracing::info!("Landlock and seccomp confine the process that compiles components");
        }
        Ok(Some(Confinement { landlock, seccomp })) => tracing::warn!(
            ?landlock,
            seccomp,
            "the kernel confines the process that compiles components only in part, or not at all: a component that takes \
             over the compiler could use what the host's user may use; Linux 6.12 with Landlock confines it in full"
        ),
    }
    view(&probed)
}

#[cfg(feature = "server")]
fn view(probed: &Result<Option<Confinement>, String>) -> api::CompilerStatus {
    let confinement = probed.as_ref().ok().copied().flatten();
    api::CompilerStatus {
        own_process: !matches!(probed, Ok(None)),
        landlock: confinement.map(|confinement| match confinement.landlock {
            Landlock::Full => api::LandlockState::Full,
            Landlock::InPart => api::LandlockState::InPart,
            Landlock::Missing => api::LandlockState::Missing,
        }),
        seccomp: confinement.map(|confinement| confinement.seccomp),
    }
}
