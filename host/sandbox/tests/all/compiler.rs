//! A child process compiles components. Its costs and failures become findings about the component.

use std::path::{Path, PathBuf};
use std::time::Duration;

use capabilities::Capabilities;
use domain::Digest;
use toolgate_sandbox::{
    ChildCompiler, CompileBounds, CompileCost, Compiler, LoadError, Plugin, Sandbox, SandboxSettings,
};
use toolgate_tests::binary::{with_modules, with_section};
use toolgate_tests::wat::guest;

use crate::world::{run, tight, value};

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

fn ours(bounds: CompileBounds) -> ChildCompiler {
    ChildCompiler { program: PathBuf::from(env!("CARGO_BIN_EXE_toolgate-compiler")), arguments: Vec::new(), bounds }
}

/// A script instead of the compiler.
fn script(text: &str, wall: Duration) -> ChildCompiler {
    let bounds = CompileBounds { wall, output: 1000, ..CompileBounds::default() };
    let arguments = ["-c", text, "compiler"].map(Into::into).to_vec();
    ChildCompiler { program: "/bin/sh".into(), arguments, bounds }
}

fn sandbox(compiler: ChildCompiler, cache: Option<&Path>) -> Sandbox {
    let cache = cache.map(Path::to_owned);
    Sandbox::new(SandboxSettings { compiler: Compiler::Child(compiler), cache, pool: 2, ..SandboxSettings::default() })
        .expect("a sandbox")
}

fn load(sandbox: &Sandbox, component: &[u8]) -> Result<Plugin, LoadError> {
    sandbox.load(Digest::of(component), component, Capabilities::default())
}

fn refused(compiler: ChildCompiler, component: &[u8]) -> LoadError {
    load(&sandbox(compiler, None), component).expect_err("refused")
}

/// A component with functions that take long to compile: straight lines with many dependencies.
fn bomb(functions: usize) -> Vec<u8> {
    let line = "(local.set 0 (i64.rotl (i64.add (local.get 0) (local.get 1)) (local.get 2)))
      (local.set 1 (i64.xor (local.get 1) (local.get 0))) (local.set 2 (i64.mul (local.get 2) (local.get 1)))";
    let function = format!("(func (param i64 i64 i64) {})", line.repeat(20_000));
    with_modules(guest(ECHO), &[&format!("(module {})", function.repeat(functions))])
}

#[test]
fn code_from_the_child_runs_and_is_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    let plugin = load(&sandbox(ours(CompileBounds::default()), Some(folder.path())), &component).expect("it loads");
    assert_eq!(value(run(&plugin, &tight()).ended), "{}");

    // Cached code needs no compiler.
    let missing = ChildCompiler { program: "/does/not/exist".into(), ..ours(CompileBounds::default()) };
    let plugin = load(&sandbox(missing.clone(), Some(folder.path())), &component).expect("it is kept");
    assert_eq!(value(run(&plugin, &tight()).ended), "{}");
    assert!(matches!(refused(missing, &component), LoadError::Host(_)), "a missing compiler is a fault of the host");
}

#[test]
fn invalid_component_is_refused_with_the_reason() {
    let relaxed = "(drop (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0))) (i32.const 0)";
    let LoadError::Compile(why) = refused(ours(CompileBounds::default()), &guest(relaxed)) else { panic!() };
    assert!(why.contains("relaxed SIMD"), "{why}");
}

#[test]
fn compiling_stays_within_its_limits() {
    let bounds = CompileBounds::default();
    let bomb = bomb(6);
    let costs = |bounds, component: &[u8]| match refused(ours(bounds), component) {
        LoadError::Costs(cost) => cost,
        other => panic!("refused otherwise: {other}"),
    };
    let (time, long) = (Duration::from_millis(300), self::bomb(40));
    assert_eq!(costs(CompileBounds { time, ..bounds }, &long), CompileCost::Time(time));
    assert_eq!(costs(CompileBounds { wall: time, ..bounds }, &long), CompileCost::Wall(time));
    let memory = 32 << 20;
    assert_eq!(costs(CompileBounds { memory, ..bounds }, &bomb), CompileCost::Memory(memory));
    let output = 1_000;
    assert_eq!(costs(CompileBounds { output, ..bounds }, &guest(ECHO)), CompileCost::Output(output));
}

#[test]
fn a_wrong_structure_is_refused_before_a_child_starts() {
    let missing = ChildCompiler { program: "/does/not/exist".into(), ..ours(CompileBounds::default()) };
    let flooded = (0..2_001).fold(guest(ECHO), |component, _| with_section(component, 0, &[0]));
    let LoadError::Structure(bound) = refused(missing, &flooded) else { panic!("refused otherwise") };
    assert_eq!(bound.what, "custom sections");
}

#[test]
fn misbehaving_compiler_is_reported_and_contained() {
    let component = guest(ECHO);
    let minute = Duration::from_secs(60);
    let refuse = |text: &str, wall| refused(script(text, wall), &component);
    assert!(matches!(refuse("cat >/dev/null; kill -SEGV $$", minute), LoadError::Crashed(why) if why.contains("11")));
    assert!(matches!(refuse("cat >/dev/null; exit 101", minute), LoadError::Crashed(_)));
    assert!(matches!(refuse("cat >/dev/null; echo nonsense", minute), LoadError::Crashed(_)));
    assert!(matches!(refuse("exit 0", minute), LoadError::Crashed(_)), "it did not even read");
    assert!(matches!(refuse("cat >/dev/null; kill -XCPU $$", minute), LoadError::Costs(CompileCost::Time(_))));
    assert!(matches!(refuse("cat >/dev/null; kill -KILL $$", minute), LoadError::Costs(CompileCost::Memory(_))));
    assert!(matches!(refuse("cat >/dev/null; echo why >&2; exit 4", minute), LoadError::Host(_)));
    // It writes endlessly to both streams, and the host reads for the allowed time.
    assert!(matches!(refuse("cat >/dev/null; exec yes", minute), LoadError::Crashed(_)));
    assert!(matches!(refuse("cat >/dev/null; yes >&2; exit 3", minute), LoadError::Compile(why) if why.len() < 1000));
    let soon = Duration::from_millis(200);
    assert!(matches!(refuse("exec sleep 1000", soon), LoadError::Costs(CompileCost::Wall(_))));
    assert!(
        matches!(refuse("sleep 1000 & wait", soon), LoadError::Costs(CompileCost::Wall(_))),
        "with all its children"
    );
}

#[test]
fn compiler_child_inherits_nothing_from_the_host() {
    let said = |text: &str| match refused(
        script(&format!("cat >/dev/null; {text} >&2; exit 3"), Duration::from_secs(60)),
        &guest(ECHO),
    ) {
        LoadError::Compile(said) => said,
        other => panic!("refused otherwise: {other}"),
    };
    assert_eq!(said("pwd"), "/");
    let environment = said("env");
    assert!(environment.contains("RAYON_NUM_THREADS=2") && !environment.contains("CARGO"), "{environment}");
}

/// Reads from a child what it has before it reads the component: the beginning of its output.
#[test]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn compiler_child_is_confined_before_it_reads() {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use landlock::{AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};

    // The shell becomes the compiler, with a descriptor that is not closed by that.
    let shell = ["-c", r#"exec 7</dev/null; exec "$0" "$@""#, env!("CARGO_BIN_EXE_toolgate-compiler")];
    let bounds = [1 << 30, 60, 1 << 20, u64::from(std::process::id())].map(|number| number.to_string());
    let mut child = Command::new("/bin/sh")
        .args(shell)
        .args(bounds)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut head = [0; 10];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut head).expect("it says how it is confined");
    let kernel = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::Execute);
    // Then come how far Landlock confines it, and whether seccomp does.
    assert_eq!((&head[..8], head[8] > 0, head[9]), (&b"tg-code\x02"[..], kernel.is_ok(), 1), "{head:?}");

    let of = |name: &str| format!("/proc/{}/{name}", child.id());
    let status = std::fs::read_to_string(of("status")).expect("it runs");
    for expected in ["NoNewPrivs:\t1", "Seccomp:\t2", "Threads:\t1"] {
        assert!(status.lines().any(|line| line == expected), "{expected}: {status}");
    }
    let descriptors = std::fs::read_dir(of("fd")).expect("it runs").map(|entry| entry.expect("it runs").path());
    let descriptors: Vec<_> = descriptors.map(|path| std::fs::read_link(path).expect("it runs")).collect();
    assert!(
        descriptors.len() == 3 && descriptors.iter().all(|to| to.to_string_lossy().starts_with("pipe:")),
        "{descriptors:?}"
    );

    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "no bytes are no component");
}

#[test]
fn compiler_child_wants_pipes() {
    use std::process::{Command, Stdio};

    let bounds = [1 << 30, 60, 1 << 20, u64::from(std::process::id())].map(|number| number.to_string());
    let refused = Command::new(env!("CARGO_BIN_EXE_toolgate-compiler")).args(bounds).stdin(Stdio::null()).output();
    let refused = refused.expect("it starts");
    assert_eq!(refused.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("must be pipes"), "{refused:?}");
}

#[test]
fn sandbox_knows_how_its_compiler_is_confined() {
    let confined = sandbox(ours(CompileBounds::default()), None).confinement().expect("it starts").expect("a process");
    let is_known = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));
    assert_eq!(confined.seccomp, is_known);
    let here = Sandbox::new(SandboxSettings { pool: 2, ..SandboxSettings::default() }).expect("a sandbox");
    assert_eq!(here.confinement().expect("nothing is started"), None);
    let missing = ChildCompiler { program: "/does/not/exist".into(), ..ours(CompileBounds::default()) };
    sandbox(missing, None).confinement().expect_err("it cannot be started");
    let silent = sandbox(script("exit 0", Duration::from_secs(60)), None);
    silent.confinement().expect_err("it does not say how it is confined");
}
