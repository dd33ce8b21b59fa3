//! From a component to machine code, under bounds: a compiler is a large program that reads what strangers wrote.
//!
//! ```text
//! host                                        child (`compile/child.rs`)
//!   structure ─ is it of a sane shape?
//!   spawn, bytes on stdin ──────────────────► bounds itself, reads, compiles
//!   waits so long, reads so much ◄─────────── code on stdout, or a line why not on stderr
//!   code::load
//! ```
//!
//! The child has no environment, no files and no descriptor but these three, and cannot open another. It ends with its
//! host. What it costs is bounded by the operating system: processor time, memory, files; how long it takes altogether and
//! what it writes, by the host.

mod child;
mod parent;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use wasmtime::Engine;

use crate::ending::{excerpt, size};
use crate::load::LoadError;

pub use child::compile_child;
pub(crate) use parent::Children;

/// Where components are compiled.
#[derive(Debug, Clone, Default)]
pub enum Compiler {
    /// In this very process. Nothing then bounds the time and the memory that a component makes the compiler spend, and one
    /// that brings the compiler down brings the program down: for components that somebody vouches for.
    #[default]
    InProcess,
    /// In a process of its own, for each component anew.
    Child(ChildCompiler),
}

impl Compiler {
    /// Whether what it compiles is what [`CompileBounds::default`] lets through, if it takes no longer than
    /// [`CompileBounds::surely_usual`] says.
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

/// A program that compiles, and what it may spend on one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildCompiler {
    /// The program. It has to call [`compile_child`] with what follows [`ChildCompiler::arguments`].
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
    /// What it may spend.
    pub bounds: CompileBounds,
}

/// What compiling one component may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileBounds {
    /// Processor time of the child, of all its threads together, rounded up to whole seconds.
    pub time: Duration,
    /// From the child's start to its end, however busy the machine is. It is there for a child that hangs and should be far
    /// more than `time`: the child gives way to everything else that wants to run.
    pub wall: Duration,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of machine code.
    pub output: u64,
}

impl Default for CompileBounds {
    /// Many times what a Python component of 18 MB takes: 120 seconds, 2 GiB, 512 MiB. And 20 minutes, which is time enough with
    /// a tenth of one core.
    fn default() -> Self {
        Self { time: Duration::from_secs(120), wall: Duration::from_secs(1200), memory: 2 << 30, output: 512 << 20 }
    }
}

impl CompileBounds {
    /// How long a child may have run that has surely not spent more processor time than the default gives: all its threads may
    /// have had a core of their own.
    pub(crate) fn surely_usual() -> Duration {
        Self::default().time / child::THREADS
    }
}

/// More than compiling may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileCost {
    /// It took more processor time.
    Time(Duration),
    /// It had not ended after so long.
    Wall(Duration),
    /// It needed more bytes of memory.
    Memory(u64),
    /// It made more bytes of machine code.
    Output(u64),
}

impl std::fmt::Display for CompileCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = |bytes: u64| size(usize::try_from(bytes).unwrap_or(usize::MAX));
        match self {
            Self::Time(most) => {
                write!(f, "takes more than {} ms of processor time (bound `compile.time_ms`)", most.as_millis())
            }
            Self::Wall(most) => {
                let most = most.as_millis();
                write!(
                    f,
                    "did not end within {most} ms, because the machine is busy or it hangs (bound `compile.wall_ms`)"
                )
            }
            Self::Memory(most) => {
                write!(f, "needs more than {} of memory (bound `compile.memory_bytes`)", bytes(*most))
            }
            Self::Output(most) => {
                write!(f, "makes more than {} of machine code (bound `compile.output_bytes`)", bytes(*most))
            }
        }
    }
}

/// Compiles in this process.
pub(crate) fn here(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, LoadError> {
    let compile = || engine.precompile_component(component);
    // A panic of the compiler is a finding about the component. Nothing of a compilation that did not end is kept.
    let compiled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(compile));
    let compiled = compiled.map_err(|_| LoadError::Crashed("it panicked".to_owned()))?;
    compiled.map_err(|error| LoadError::Compile(excerpt(&format!("{error:#}"))))
}
