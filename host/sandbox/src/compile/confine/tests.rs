//! Each kind of confinement alone, in a thread: it holds for the thread and those that it starts, and for no others.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Resource, Rlimit, getpid, getppid, setrlimit, test_kill_process};
use toolgate_tests::parts::Part;

use super::{Landlock, landlock, seccomp};

/// Something that a confined process must not do, and its error. It gets the parent of this process.
type Attempt = (&'static str, fn(Pid) -> io::Error);

fn denied<T>(done: io::Result<T>) -> io::Error {
    done.err().unwrap_or_else(|| io::Error::other("it was done"))
}

/// The errors of attempts in a confined thread, and in a thread that it starts.
fn tried<C: Send>(confine: fn() -> C, attempts: &[Attempt]) -> (C, Vec<(&'static str, io::Error)>) {
    // A confined thread cannot ask for it.
    let parent = getppid().expect("cargo runs the test");
    let attempt = || attempts.iter().map(|(name, attempt)| (*name, attempt(parent))).collect::<Vec<_>>();
    let confined = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let confined = confine();
            let mut errors = attempt();
            errors.extend(thread::scope(|scope| scope.spawn(attempt).join()).expect("no panic"));
            (confined, errors)
        });
        thread.join().expect("no panic")
    });
    File::open("/").expect("other threads are not confined");
    confined
}

fn to_the_parent(parent: Pid) -> io::Error {
    denied(test_kill_process(parent).map_err(io::Error::from))
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn system_calls_beyond_compiling_do_not_exist() {
    let attempts: [Attempt; 9] = [
        ("open", |_| denied(File::open("/"))),
        ("tcp", |_| denied(TcpListener::bind("127.0.0.1:0"))),
        ("udp", |_| denied(UdpSocket::bind("127.0.0.1:0"))),
        ("unix", |_| denied(UnixDatagram::unbound())),
        ("exec", |_| Command::new("/does/not/exist").exec()),
        ("fork", |_| denied(Command::new("/bin/true").stdin(Stdio::inherit()).spawn())),
        ("signal to the parent", to_the_parent),
        ("signal to itself", |_| denied(test_kill_process(getpid()).map_err(io::Error::from))),
        ("limits", |_| {
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            denied(setrlimit(Resource::Core, none).map_err(io::Error::from))
        }),
    ];
    let (confined, errors) = tried(seccomp, &attempts);
    assert!(confined, "this kernel has no seccomp");
    for (name, error) in errors {
        assert_eq!(error.raw_os_error(), Some(libc::ENOSYS), "{name}: {error}");
    }
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn confined_compiler_compiles_and_runs_no_code() {
    let module = wat::parse_str("(module (func (export \"f\")))").expect("a module");
    let (compiled, published) = thread::scope(|scope| {
        let confined = scope.spawn(|| {
            assert!(seccomp(), "this kernel has no seccomp");
            let engine = crate::engine::compiler().expect("an engine");
            let published = wasmtime::Module::new(&engine, &module).map(drop);
            (engine.precompile_module(&module), published.map_err(|error| format!("{error:#}")))
        });
        confined.join().expect("no panic")
    });
    assert!(!compiled.expect("it compiles").is_empty());
    let refused = published.expect_err("memory with code is refused");
    assert!(refused.contains("os error 38"), "{refused}");
}

/// How far this kernel can enforce the rules.
fn possible() -> Landlock {
    use landlock::{AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope};

    let rules = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    // The newest rules are those for signals, the oldest those for files.
    if rules().scope(Scope::Signal).is_ok() {
        Landlock::Full
    } else if rules().handle_access(AccessFs::Execute).is_ok() {
        Landlock::InPart
    } else {
        Landlock::Missing
    }
}

/// On a kernel without Landlock the report says so, and nothing is denied. This is no proof, so the test fails there.
#[test]
fn landlock_denies_files_connections_and_signals() {
    let attempts: [Attempt; 4] = [
        ("open", |_| denied(File::open("/"))),
        ("listen", |_| denied(TcpListener::bind("127.0.0.1:0"))),
        ("connect", |_| denied(TcpStream::connect(("127.0.0.1", 9)))),
        ("signal to the parent", to_the_parent),
    ];
    let (confined, errors) = tried(landlock, &attempts);
    let all =
        |name, code| errors.iter().filter(|(of, _)| *of == name).all(|(_, error)| error.raw_os_error() == Some(code));
    let (files, signals) = (all("open", libc::EACCES), all("signal to the parent", libc::EPERM));
    let network = all("listen", libc::EACCES) && all("connect", libc::EACCES);
    assert_eq!(confined, possible());
    match confined {
        Landlock::Full => assert!(files && network && signals, "{errors:?}"),
        Landlock::InPart => assert!(files, "{errors:?}"),
        Landlock::Missing => {
            assert!(!files, "{errors:?}");
            assert!(
                Part::Landlock.is_left_out(),
                "this kernel has no Landlock: use Linux 5.13 or newer with `landlock` in `lsm=`, or leave this test out \
                 with `cargo xtask test --without landlock`"
            );
        }
    }
}
