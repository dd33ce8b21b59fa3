//! The child: bounds itself, compiles what it reads, writes what came of it, and ends.
//!
//! It counts as the component's from the first byte that it compiles: whatever it writes, the host bounds.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, nice, setrlimit};

use super::CompileBounds;
use crate::engine;

/// What the output begins with; the length of the code follows in eight bytes, little end first.
pub(super) const MAGIC: [u8; 8] = *b"tg-code\x01";

/// Threads that compile.
pub(super) const THREADS: u32 = 2;

/// The component is not taken; standard error says why.
pub(super) const REFUSED: u8 = 3;
/// The child could not do its part; standard error says why.
pub(super) const FAILED: u8 = 4;
/// There is more code than there may be.
pub(super) const TOO_MUCH_CODE: u8 = 5;
/// There is not enough memory.
pub(super) const OUT_OF_MEMORY: u8 = 6;

/// Address space beyond the memory that is bounded: the program itself, and what allocators reserve and do not use.
const UNUSED_SPACE: u64 = 2 << 30;

/// How a child ends that has no code to give.
struct Ending(u8, String);

fn failed(what: &str) -> impl FnOnce(io::Error) -> Ending {
    move |error| Ending(FAILED, format!("{what}: {error}"))
}

/// The words that follow a compiler's own arguments.
pub(super) fn words(bounds: &CompileBounds) -> Vec<OsString> {
    let seconds = bounds.time.as_secs().saturating_add(u64::from(bounds.time.subsec_nanos() > 0)).max(1);
    let numbers = [bounds.memory, seconds, bounds.output, u64::from(std::process::id())];
    numbers.iter().map(|number| OsString::from(number.to_string())).collect()
}

/// What a program does that compiles for a host: reads a component from standard input and writes its code to standard
/// output, within the bounds that `arguments` says, which are what followed [`ChildCompiler::arguments`].
///
/// Bounds this whole process for good, and so is all that the process is for. Call it before anything else, with no thread
/// started and no file opened.
///
/// [`ChildCompiler::arguments`]: super::ChildCompiler::arguments
pub fn compile_child(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<_> = arguments.into_iter().collect();
    let compiled = std::panic::catch_unwind(|| compile(&words));
    let Ending(code, why) = match compiled {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(ending)) => ending,
        // The hook has already said what happened.
        Err(_) => Ending(101, String::new()),
    };
    // If nobody reads it any more, nobody misses it.
    let _ = io::stderr().write_all(why.as_bytes());
    ExitCode::from(code)
}

fn compile(words: &[OsString]) -> Result<(), Ending> {
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.to_str()?.parse().ok()).collect();
    let [memory, seconds, output, parent] = numbers[..] else {
        return Err(Ending(FAILED, "four numbers are expected: memory, seconds, output, parent".into()));
    };
    bound(memory, seconds, parent).map_err(failed("the compiler could not bound itself"))?;
    let mut component = Vec::new();
    io::stdin().lock().read_to_end(&mut component).map_err(failed("the component could not be read"))?;
    let engine = engine::compiler().map_err(|error| Ending(FAILED, format!("there is no compiler: {error:#}")))?;
    let code = engine.precompile_component(&component).map_err(|error| {
        let why = format!("{error:#}");
        let memory = error.is::<wasmtime::OutOfMemory>() || why.contains("annot allocate memory");
        Ending(if memory { OUT_OF_MEMORY } else { REFUSED }, why)
    })?;
    if code.len() as u64 > output {
        return Err(Ending(TOO_MUCH_CODE, String::new()));
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(&MAGIC).and_then(|()| stdout.write_all(&(code.len() as u64).to_le_bytes()));
    let written = written.and_then(|()| stdout.write_all(&code)).and_then(|()| stdout.flush());
    written.map_err(failed("the code could not be written"))
}

/// Bounds this process. None of it can be taken back.
fn bound(memory: u64, seconds: u64, parent: u64) -> io::Result<()> {
    die_with(parent)?;
    let at_most = |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    at_most(Resource::Core, 0)?;
    at_most(Resource::Fsize, 0)?;
    // Standard input, output and error; no other file, socket or pipe can be opened.
    at_most(Resource::Nofile, 3)?;
    // At the first of the two it is told in words of its own, `XCPU`; at the second it is killed, as for want of memory.
    setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds.saturating_add(1)) })?;
    at_most(Resource::Data, memory)?;
    at_most(Resource::As, memory.saturating_add(UNUSED_SPACE))?;
    // Calls go first. That this is not allowed costs them some time.
    let _ = nice(10);
    Ok(())
}

/// Ends with the host: nobody would take what is compiled.
#[cfg(target_os = "linux")]
fn die_with(parent: u64) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let found = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    // It may have ended before the line above.
    if u64::try_from(found) == Ok(parent) { Ok(()) } else { Err(io::Error::other("the host is gone")) }
}

/// Elsewhere the bound on processor time ends it.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: u64) -> io::Result<()> {
    Ok(())
}
