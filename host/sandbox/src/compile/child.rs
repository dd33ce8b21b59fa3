//! The child: bounds and confines itself, compiles its input, writes the result, and ends.
//!
//! After the first compiled byte the component may control the child, so the host bounds everything that it writes.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, nice, setrlimit};

use super::{CompileBounds, Confinement, confine};
use crate::engine;

/// The beginning of the output. Two bytes for the confinement follow, and then the length of the code in eight bytes,
/// little-endian.
pub(super) const MAGIC: [u8; 8] = *b"tg-code\x02";

/// The component is refused; standard error has the reason.
pub(super) const REFUSED: u8 = 3;
/// The child failed; standard error has the reason.
pub(super) const FAILED: u8 = 4;
/// The code is too large.
pub(super) const TOO_MUCH_CODE: u8 = 5;
/// The memory is exhausted.
pub(super) const OUT_OF_MEMORY: u8 = 6;

/// Address space beyond the memory bound: the program itself, and memory that allocators reserve and do not use.
const UNUSED_SPACE: u64 = 2 << 30;

/// The end of a child without code.
struct Ending(u8, String);

fn failed(what: &str) -> impl FnOnce(io::Error) -> Ending {
    move |error| Ending(FAILED, format!("{what}: {error}"))
}

/// The arguments that follow the compiler's own.
pub(super) fn words(bounds: &CompileBounds) -> Vec<OsString> {
    let seconds = bounds.time.as_secs().saturating_add(u64::from(bounds.time.subsec_nanos() > 0)).max(1);
    let numbers = [bounds.memory, seconds, bounds.output, u64::from(std::process::id())];
    numbers.iter().map(|number| OsString::from(number.to_string())).collect()
}

/// The main function of a program that compiles for a host. It reads a component from standard input and writes its code to
/// standard output, within the bounds in `arguments`, which follow [`ChildCompiler::arguments`].
///
/// It bounds and confines this whole process permanently and closes every descriptor but standard input, output and
/// error, which must be pipes. Call it before anything else: no thread may run and no file may be open.
///
/// [`ChildCompiler::arguments`]: super::ChildCompiler::arguments
pub fn compile_child(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<_> = arguments.into_iter().collect();
    let compiled = std::panic::catch_unwind(|| compile(&words));
    let Ending(code, why) = match compiled {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(ending)) => ending,
        // The panic hook has already reported it.
        Err(_) => Ending(101, String::new()),
    };
    // An error means that the host does not read the output any more.
    let _ = io::stderr().write_all(why.as_bytes());
    ExitCode::from(code)
}

fn compile(words: &[OsString]) -> Result<(), Ending> {
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.to_str()?.parse().ok()).collect();
    let [memory, seconds, output, parent] = numbers[..] else {
        return Err(Ending(FAILED, "four numbers are expected: memory, seconds, output, parent".into()));
    };
    let confinement = bound(memory, seconds, parent).map_err(failed("the compiler could not bound itself"))?;
    // Written before the component is read, so that the component cannot change it.
    let mut stdout = io::stdout().lock();
    let begun = stdout.write_all(&MAGIC).and_then(|()| stdout.write_all(&confinement.to_bytes()));
    begun.and_then(|()| stdout.flush()).map_err(failed("the confinement could not be written"))?;
    let mut component = Vec::new();
    io::stdin().lock().read_to_end(&mut component).map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => Ending(OUT_OF_MEMORY, error.to_string()),
        _ => failed("the component could not be read")(error),
    })?;
    let engine = engine::compiler().map_err(|error| Ending(FAILED, format!("there is no compiler: {error:#}")))?;
    let code = engine.precompile_component(&component).map_err(|error| {
        let why = format!("{error:#}");
        let memory = error.is::<wasmtime::OutOfMemory>() || why.contains("annot allocate memory");
        Ending(if memory { OUT_OF_MEMORY } else { REFUSED }, why)
    })?;
    if code.len() as u64 > output {
        return Err(Ending(TOO_MUCH_CODE, String::new()));
    }
    let written = stdout.write_all(&(code.len() as u64).to_le_bytes());
    let written = written.and_then(|()| stdout.write_all(&code)).and_then(|()| stdout.flush());
    written.map_err(failed("the code could not be written"))
}

/// Bounds and confines this process. Nothing of it can be undone.
fn bound(memory: u64, seconds: u64, parent: u64) -> io::Result<Confinement> {
    die_with(parent)?;
    confine::only_pipes()?;
    // It needs a descriptor, so it comes before the limit on them.
    let landlock = confine::landlock();
    let at_most = |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    at_most(Resource::Core, 0)?;
    at_most(Resource::Fsize, 0)?;
    // Standard input, output and error; no other file, socket or pipe can be opened.
    at_most(Resource::Nofile, 3)?;
    // The first limit sends the signal `XCPU`; the second one kills the process, as a lack of memory does.
    setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds.saturating_add(1)) })?;
    at_most(Resource::Data, memory)?;
    at_most(Resource::As, memory.saturating_add(UNUSED_SPACE))?;
    // Calls have priority. If lowering the priority fails, they only take longer.
    let _ = nice(10);
    // It forbids to change limits, so it comes after them.
    Ok(Confinement { landlock, seccomp: confine::seccomp() })
}

/// Ends with the host: nobody needs the result then.
#[cfg(target_os = "linux")]
fn die_with(parent: u64) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let found = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    // The host may have ended before the previous line.
    if u64::try_from(found) == Ok(parent) { Ok(()) } else { Err(io::Error::other("the host has ended")) }
}

/// Elsewhere the bound on processor time ends the child.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: u64) -> io::Result<()> {
    Ok(())
}
