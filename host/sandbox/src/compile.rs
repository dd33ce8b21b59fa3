//! Compiles a component to machine code, under bounds: a compiler is a large program, and its input comes from
//! strangers.
//!
//! ```text
//! host                                        child (`compile/child.rs`)
//!   structure: is its structure within bounds?
//!   spawn, bytes on stdin ──────────────────► bounds and confines itself, reads, compiles
//!   waits for its end, with a limit ◄──────── code on stdout, or a line on stderr
//!   code::load
//! ```
//!
//! The child has no environment, no files and no descriptors but these three, and cannot open others. It ends with its
//! host. The operating system bounds its processor time, memory and files; the host bounds its time and its output. Where
//! the kernel has Landlock and seccomp, the child can neither start processes nor signal them (`compile/confine.rs`).

mod child;
mod confine;
mod parent;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use capabilities::excerpt;
use wasmtime::Engine;

use crate::load::LoadError;

pub use child::compile_child;
pub(crate) use parent::Children;

/// The process that compiles components.
#[derive(Debug, Clone, Default)]
pub enum Compiler {
    /// In this process. Nothing bounds the time and the memory of the compiler, and a component that crashes the
    /// compiler crashes the program: only for trusted components.
    #[default]
    InProcess,
    /// In a separate process for each component.
    Child(ChildCompiler),
}

impl Compiler {
    /// Whether this compiler accepts exactly the components that [`CompileBounds::default`] accepts, if it gets no more processor
    /// time than that.
    pub(crate) fn is_bounded_as_usual(&self) -> bool {
        let usual = CompileBounds::default();
        match self {
            Self::InProcess => false,
            Self::Child(ChildCompiler { bounds, .. }) => {
                let costs_the_same = bounds.memory == usual.memory && bounds.output == usual.output;
                costs_the_same && bounds.time >= usual.time && bounds.wall >= usual.wall
            }
        }
    }
}

/// A program that compiles, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildCompiler {
    /// It must call [`compile_child`] with the arguments after [`ChildCompiler::arguments`].
    pub program: PathBuf,
    /// The program's first arguments.
    pub arguments: Vec<OsString>,
    pub bounds: CompileBounds,
}

/// The bounds on compiling one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileBounds {
    /// Processor time of all threads of the child together, rounded up to whole seconds.
    pub time: Duration,
    /// Time from the child's start to its end, also on a busy machine. It catches a child that hangs, and should be far
    /// more than `time`: the child has low priority.
    pub wall: Duration,
    /// The limit on memory in bytes.
    pub memory: u64,
    /// The limit on machine code in bytes.
    pub output: u64,
}

impl Default for CompileBounds {
    /// Many times the cost of a Python component of 18 MB: 120 seconds, 2 GiB, 512 MiB; and 20 minutes, which is enough
    /// on a tenth of a core.
    fn default() -> Self {
        Self { time: Duration::from_secs(120), wall: Duration::from_secs(1200), memory: 2 << 30, output: 512 << 20 }
    }
}

/// How the kernel confines a compiling process, beyond its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confinement {
    pub landlock: Landlock,
    /// Whether a filter allows only the system calls that compiling needs.
    pub seccomp: bool,
}

/// How much of its rules Landlock enforces: no files, no TCP, no signals and no abstract sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    Missing,
    /// An older kernel knows only some of the rules.
    InPart,
    Full,
}

impl Confinement {
    const BYTES: usize = 2;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        [self.landlock as u8, self.seccomp.into()]
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [landlock, seccomp] = *bytes.first_chunk()?;
        let landlock =
            [Landlock::Missing, Landlock::InPart, Landlock::Full].into_iter().find(|one| *one as u8 == landlock)?;
        Some(Self { landlock, seccomp: seccomp == 1 })
    }
}

/// Compiles in this process.
pub(crate) fn here(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, LoadError> {
    let compile = || engine.precompile_component(component);
    // A panic of the compiler is a finding about the component. A compilation that did not end leaves nothing behind.
    let compiled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(compile));
    let compiled = compiled.map_err(|_| LoadError::Crashed("it panicked".to_owned()))?;
    compiled.map_err(|error| LoadError::Compile(excerpt(&format!("{error:#}"))))
}
