//! The host's side: starts a child, sends it the component, and bounds the time and the output. The operating system bounds
//! processor time and memory; the child's exit status tells which bound it exceeded.

use std::io::{self, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use capabilities::excerpt;
use rustix::process::{Pid, Signal, kill_process_group};

use super::child::{self, MAGIC};
use super::{ChildCompiler, CompileBounds, Confinement};
use crate::load::{CompileCost, LoadError};

/// Compilations at once; further ones wait. One may be for a plugin that is loaded, and one for a call.
const AT_ONCE: usize = 2;

/// The bounds on the threads of one compilation.
const MIN_THREADS: usize = 2;
const MAX_THREADS: usize = 4;

/// Bytes of a child's standard error that are read.
const MAX_WORDS: u64 = 8 << 10;

/// The size of the output before the code.
const HEAD: usize = 2 * MAGIC.len() + Confinement::BYTES;

/// The time in which a child must exit after the end of its output.
const GRACE: Duration = Duration::from_secs(1);

/// The interval of checks whether a child has exited.
const LOOK: Duration = Duration::from_millis(1);

/// Starts a few children at once.
pub(crate) struct Children {
    compiler: ChildCompiler,
    running: Mutex<usize>,
    ended: Condvar,
}

/// The result of a child.
struct CompilerEnd {
    output: Vec<u8>,
    words: Vec<u8>,
    /// `None`: the host killed it because it took too long.
    status: Option<ExitStatus>,
}

impl Children {
    /// No child has started.
    pub(crate) fn new(compiler: ChildCompiler) -> Self {
        Self { compiler, running: Mutex::default(), ended: Condvar::new() }
    }

    pub(crate) fn bounds(&self) -> CompileBounds {
        self.compiler.bounds
    }

    /// Compiles a component in a child. Blocks its thread, also while other compilations run.
    pub(crate) fn compile(&self, component: &[u8], bounds: CompileBounds) -> Result<Vec<u8>, LoadError> {
        let _turn = self.turn();
        let ended =
            self.run(component, bounds).context("the host could not run the compiler").map_err(LoadError::Host)?;
        result_of(ended, bounds)
    }

    /// Starts a child without a component, and asks it how it is confined. Blocks its thread.
    pub(crate) fn confinement(&self) -> anyhow::Result<Confinement> {
        // It ends at once, so it does not wait for compilations.
        let CompilerEnd { output, words, .. } =
            self.run(&[], self.bounds()).context("the host could not run the compiler")?;
        let confinement = output.strip_prefix(&MAGIC).and_then(Confinement::from_bytes);
        confinement
            .ok_or_else(|| anyhow::anyhow!("the compiler says: {}", excerpt(String::from_utf8_lossy(&words).trim())))
    }

    fn turn(&self) -> Turn<'_> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.ended.wait_while(running, |running| *running >= AT_ONCE);
        *free.unwrap_or_else(PoisonError::into_inner) += 1;
        Turn(self)
    }

    fn run(&self, component: &[u8], bounds: CompileBounds) -> anyhow::Result<CompilerEnd> {
        let mut child = self.spawn(&bounds)?;
        let pid = Pid::from_child(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            // The threads below end in any case, because the child does.
            let mut child = Reaped { child, pid };
            let feed = move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(component));
            std::thread::Builder::new().name("toolgate-feed".into()).spawn_scoped(scope, feed)?;
            let listen = move || read(stderr, MAX_WORDS);
            let words = std::thread::Builder::new().name("toolgate-words".into()).spawn_scoped(scope, listen)?;
            let (sender, receiver) = mpsc::channel();
            let max = bounds.output.saturating_add(HEAD as u64).saturating_add(1);
            let take = move || sender.send(read(stdout, max));
            std::thread::Builder::new().name("toolgate-code".into()).spawn_scoped(scope, take)?;
            let output = match receiver.recv_timeout(bounds.wall) {
                Ok(output) => output?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Ok(CompilerEnd { output: Vec::new(), words: Vec::new(), status: None });
                }
            };
            let status = child.end()?;
            let words = words.join().map_err(|_| io::Error::other("a reader panicked"))??;
            Ok(CompilerEnd { output, words, status: Some(status) })
        })
    }

    fn spawn(&self, bounds: &CompileBounds) -> io::Result<Child> {
        let ChildCompiler { program, arguments, .. } = &self.compiler;
        Command::new(program)
            .arg0("toolgate-compiler")
            .args(arguments)
            .args(child::words(bounds))
            .env_clear()
            .env("RAYON_NUM_THREADS", threads().to_string())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // In a process group, so that the host can kill all of it, and signals from the host's terminal do not reach
            // it.
            .process_group(0)
            .spawn()
    }
}

/// The threads of a child.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(MIN_THREADS, |processors| threads_of(processors.get()))
}

/// Half of the processors, because calls need the others. Each thread reserves address space.
fn threads_of(processors: usize) -> usize {
    (processors / 2).clamp(MIN_THREADS, MAX_THREADS)
}

fn result_of(ended: CompilerEnd, bounds: CompileBounds) -> Result<Vec<u8>, LoadError> {
    let CompilerEnd { output, words, status } = ended;
    let costs = |cost| Err(LoadError::Costs(cost));
    let message = excerpt(String::from_utf8_lossy(&words).trim());
    let Some(status) = status else { return costs(CompileCost::Wall(bounds.wall)) };
    let ran_out = message.starts_with("memory allocation of") || status.code() == Some(child::OUT_OF_MEMORY.into());
    if ran_out || status.signal() == Some(Signal::KILL.as_raw()) {
        return costs(CompileCost::Memory(bounds.memory));
    }
    if status.signal() == Some(Signal::XCPU.as_raw()) {
        return costs(CompileCost::Time(bounds.time));
    }
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(0) => code(output, bounds.output),
        Some(child::REFUSED) => Err(LoadError::Compile(message)),
        Some(child::TOO_MUCH_CODE) => costs(CompileCost::Output(bounds.output)),
        Some(child::FAILED) => Err(LoadError::Host(anyhow::anyhow!("the compiler says: {message}"))),
        _ => Err(LoadError::Crashed(if message.is_empty() {
            status.to_string()
        } else {
            format!("{status}: {message}")
        })),
    }
}

/// The code in a child's output.
fn code(mut output: Vec<u8>, max: u64) -> Result<Vec<u8>, LoadError> {
    let rest = output.strip_prefix(&MAGIC).and_then(|rest| rest.get(Confinement::BYTES..));
    let length = rest.and_then(|rest| rest.first_chunk::<8>()).map(|text| u64::from_le_bytes(*text));
    match length {
        Some(length) if length > max => Err(LoadError::Costs(CompileCost::Output(max))),
        Some(length) if length == (output.len() - HEAD) as u64 => {
            output.drain(..HEAD);
            Ok(output)
        }
        _ => Err(LoadError::Crashed("what it wrote is not what it should write".into())),
    }
}

fn read(from: Option<impl Read>, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.map_or(Ok(0), |from| from.take(max).read_to_end(&mut bytes))?;
    Ok(bytes)
}

/// One of the compilations that run now.
struct Turn<'a>(&'a Children);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_one();
    }
}

/// A child that is killed when this is dropped.
struct Reaped {
    child: Child,
    pid: Pid,
}

impl Reaped {
    /// Its exit status; kills it if it takes too long.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let looks = GRACE.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(LOOK);
        }
        self.stop()
    }

    fn stop(&mut self) -> io::Result<ExitStatus> {
        // The process ids stay reserved until the child is waited for.
        if self.child.try_wait()?.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        self.child.wait()
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::error!(%error, "a compiler could not be stopped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::threads_of;

    #[test]
    fn half_of_the_processors_compile() {
        for (processors, expected) in [(1, 2), (2, 2), (5, 2), (6, 3), (8, 4), (128, 4)] {
            assert_eq!(threads_of(processors), expected, "{processors}");
        }
    }
}
