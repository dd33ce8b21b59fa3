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
        Ok(Some(confinement)) => match warning(*confinement) {
            None => tracing::info!("Landlock and seccomp confine the process that compiles components"),
            Some(warning) => tracing::warn!("{warning}"),
        },
    }
    view(&probed)
}

/// The harm that a component could do if it took over its compiler, because the kernel lacks some protection. `None` if it confines the
/// compiler in full.
#[cfg(feature = "server")]
fn warning(Confinement { landlock, seccomp }: Confinement) -> Option<String> {
    let lacks = match (landlock, seccomp) {
        (Landlock::Full, true) => return None,
        (Landlock::Full, false) => "Landlock confines the process that compiles components, and seccomp does not",
        (Landlock::InPart, true) => {
            "seccomp confines the process that compiles components, and Landlock does so only in part"
        }
        (Landlock::Missing, true) => "seccomp confines the process that compiles components, and Landlock does not",
        (Landlock::InPart, false) => {
            "Landlock confines the process that compiles components only in part, and seccomp does not"
        }
        (Landlock::Missing, false) => "neither Landlock nor seccomp confines the process that compiles components",
    };
    let risk = match (landlock, seccomp) {
        (Landlock::Missing, false) => "use what the host's user may use",
        (Landlock::InPart, false) => "use a part of what the host's user may use",
        (Landlock::Full, false) => "start processes, and use what Landlock does not restrict",
        (_, true) => "get out through a single defect in the filter of system calls",
    };
    Some(format!(
        "{lacks}: a component that takes over the compiler could {risk}; Linux 6.12 with Landlock and seccomp confines it \
         in full"
    ))
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

#[cfg(all(test, feature = "server"))]
mod tests {
    use api::LandlockState;

    use super::*;

    #[test]
    fn start_warns_unless_the_kernel_confines_the_compiler_in_full() {
        for (landlock, seccomp, lacks, risk) in [
            (
                Landlock::Missing,
                false,
                "neither Landlock nor seccomp confines",
                "could use what the host's user may use",
            ),
            (Landlock::InPart, false, "only in part, and seccomp does not", "could use a part of what"),
            (Landlock::Full, false, "Landlock confines the process", "could start processes"),
            (Landlock::Missing, true, "and Landlock does not", "could get out through a single defect"),
            (Landlock::InPart, true, "Landlock does so only in part", "could get out through a single defect"),
        ] {
            let warning = warning(Confinement { landlock, seccomp }).expect("a warning");
            assert!(warning.contains(lacks) && warning.contains(risk), "{landlock:?} {seccomp}: {warning}");
            assert!(warning.ends_with("Linux 6.12 with Landlock and seccomp confines it in full"), "{warning}");
        }
        assert_eq!(warning(Confinement { landlock: Landlock::Full, seccomp: true }), None);
    }

    #[test]
    fn status_has_what_the_kernel_enforces() {
        let status = |probed| {
            let api::CompilerStatus { own_process, landlock, seccomp } = view(&probed);
            (own_process, landlock, seccomp)
        };
        let confined = |landlock, seccomp| status(Ok(Some(Confinement { landlock, seccomp })));
        assert_eq!(confined(Landlock::Missing, false), (true, Some(LandlockState::Missing), Some(false)));
        assert_eq!(confined(Landlock::InPart, true), (true, Some(LandlockState::InPart), Some(true)));
        assert_eq!(confined(Landlock::Full, true), (true, Some(LandlockState::Full), Some(true)));
        assert_eq!(status(Ok(None)), (false, None, None), "the host itself compiles");
        assert_eq!(status(Err("no such file".into())), (true, None, None), "it cannot be started");
    }
}
