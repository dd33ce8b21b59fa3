//! The program that compiles components, and what it may spend on each.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use sandbox::{ChildCompiler, Compiler};

use crate::config::CompileTable;

/// A program that compiles components: run anew for each, bounded, and stopped when it spends too much.
///
/// It has to hand what follows its arguments to [`compile_child`](crate::compile_child) before it does anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerProgram {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

impl CompilerProgram {
    /// This very program, run again with these arguments. It is the file that runs now, even if another one has taken its
    /// place on disk.
    ///
    /// # Errors
    /// When it cannot be found out which program this is.
    pub fn itself(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> io::Result<Self> {
        let linked = Path::new("/proc/self/exe");
        let program = if linked.exists() { linked.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// The compiler of a host: a process of its own where there is a program for it.
pub(crate) fn compiler(program: Option<CompilerProgram>, table: &CompileTable) -> Compiler {
    match program {
        None => Compiler::InProcess,
        Some(CompilerProgram { program, arguments }) => {
            Compiler::Child(ChildCompiler { program, arguments, bounds: table.bounds() })
        }
    }
}
