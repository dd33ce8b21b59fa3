//! The program that compiles components, and its limits.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use sandbox::{ChildCompiler, Compiler};

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
