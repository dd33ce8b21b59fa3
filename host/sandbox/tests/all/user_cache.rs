//! Compiled code that several programs of one user share. It is compiled once, but each program applies its own limits.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use capabilities::Capabilities;
use domain::Digest;
use toolgate_sandbox::{
    CacheOwner, ChildCompiler, CompileBounds, CompileCost, Compiler, LoadError, Sandbox, SandboxSettings, section,
};
use toolgate_tests::binary::with_section;
use toolgate_tests::wat::guest;

use crate::cache::code;
use crate::world::{run, tight, value};

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

fn compiler(bounds: CompileBounds) -> ChildCompiler {
    ChildCompiler { program: PathBuf::from(env!("CARGO_BIN_EXE_toolgate-compiler")), arguments: Vec::new(), bounds }
}

/// A missing compiler: every compilation fails.
fn none(bounds: CompileBounds) -> ChildCompiler {
    ChildCompiler { program: "/does/not/exist".into(), ..compiler(bounds) }
}

fn open(compiler: ChildCompiler, folder: &Path, cache_bytes: u64) -> Sandbox {
    let settings = SandboxSettings {
        cache: Some(folder.to_owned()),
        cache_owner: CacheOwner::User,
        cache_bytes,
        compiler: Compiler::Child(compiler),
        pool: 2,
        ..SandboxSettings::default()
    };
    Sandbox::new(settings).expect("a sandbox")
}

fn load(compiler: ChildCompiler, folder: &Path, component: &[u8]) -> Result<(), LoadError> {
    let sandbox = open(compiler, folder, 1 << 30);
    let plugin = sandbox.load(Digest::of(component), component, Capabilities::default())?;
    assert_eq!(value(run(&plugin, &tight()).ended), "{}");
    Ok(())
}

fn usual() -> CompileBounds {
    CompileBounds::default()
}

#[test]
fn one_program_compiles_for_all_programs_of_the_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("compiled");
    let component = guest(ECHO);
    load(compiler(usual()), &path, &component).expect("it is compiled");
    load(none(usual()), &path, &component).expect("it is kept");
    let packed = section::with(&component, b"what it declares").expect("a component");
    load(none(usual()), &path, &packed).expect("the same code, with a declaration");
    assert_eq!(code(&path).len(), 1);
    let other = guest("(unreachable)");
    let error = open(none(usual()), &path, 1 << 30).load(Digest::of(&other), &other, Capabilities::default());
    assert!(matches!(error, Err(LoadError::Host(_))), "another component is compiled");

    // A program without the component does not remove the code for others.
    let sandbox = open(none(usual()), &path, 1 << 30);
    assert_eq!(sandbox.retain(&std::collections::HashSet::new()).expect("it may"), 0);
    load(none(usual()), &path, &component).expect("it is still kept");
}

#[test]
fn code_with_a_changed_byte_is_compiled_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    load(compiler(usual()), folder.path(), &component).expect("it is compiled");
    let [file] = &code(folder.path())[..] else { panic!("one file") };
    let good = fs::read(file).expect("it is there");
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(file, &bad).expect("we may");
    assert!(matches!(load(none(usual()), folder.path(), &component), Err(LoadError::Host(_))), "it is not run");
    load(compiler(usual()), folder.path(), &component).expect("it is compiled");
    assert!(fs::read(file).expect("it is there") == good);
}

#[test]
fn limits_of_another_program_do_not_apply() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    load(compiler(usual()), folder.path(), &component).expect("it is compiled");
    let tight = CompileBounds { output: 1_000, ..usual() };
    let refused = load(compiler(tight), folder.path(), &component);
    assert!(matches!(refused, Err(LoadError::Costs(CompileCost::Output(1_000)))), "its own limit applies");
    for bounds in [
        CompileBounds { memory: 1 << 30, ..usual() },
        CompileBounds { time: usual().time / 2, ..usual() },
        CompileBounds { wall: usual().wall / 2, ..usual() },
    ] {
        assert!(matches!(load(none(bounds), folder.path(), &component), Err(LoadError::Host(_))), "it is compiled");
    }
    load(none(CompileBounds { time: usual().time * 10, ..usual() }), folder.path(), &component).expect("it is kept");

    // The code is cached, but the structure of the component exceeds this program's limits.
    let mut name = vec![15];
    name.extend_from_slice(section::SECTION.as_bytes());
    let flooded = (0..2_001).fold(component, |component, _| with_section(component, 0, &name));
    assert!(matches!(load(compiler(usual()), folder.path(), &flooded), Err(LoadError::Structure(_))));
}

#[test]
fn code_compiled_under_wider_limits_is_not_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    for bounds in [
        CompileBounds { memory: usual().memory * 2, ..usual() },
        CompileBounds { output: usual().output * 2, ..usual() },
    ] {
        load(compiler(bounds), folder.path(), &component).expect("it is compiled");
        assert!(matches!(load(none(usual()), folder.path(), &component), Err(LoadError::Host(_))));
    }
}

/// A compiler that needs more processor time than a host allows: it ends as the kernel ends it then.
fn slow(bounds: CompileBounds) -> ChildCompiler {
    let script = "[ \"$2\" -gt 120 ] || { ulimit -c 0; kill -XCPU $$; }; exec \"$0\" \"$@\"";
    let real = compiler(bounds).program;
    let arguments = vec!["-c".into(), script.into(), real.into_os_string()];
    ChildCompiler { program: "/bin/sh".into(), arguments, bounds }
}

#[test]
fn code_that_a_host_would_refuse_is_not_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    let wide = CompileBounds { time: usual().time * 10, ..usual() };
    let refused = load(slow(usual()), folder.path(), &component);
    assert!(matches!(refused, Err(LoadError::Costs(CompileCost::Time(time))) if time == usual().time));
    load(slow(wide), folder.path(), &component).expect("an author may wait longer");
    assert!(matches!(load(none(usual()), folder.path(), &component), Err(LoadError::Host(_))), "it is not kept");
    load(compiler(wide), folder.path(), &component).expect("it is compiled");
    load(none(usual()), folder.path(), &component).expect("its time was a host's");
}

#[test]
fn unusable_cache_folder_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    let (file, link, elsewhere) =
        (folder.path().join("file"), folder.path().join("link"), folder.path().join("elsewhere"));
    fs::write(&file, "no folder").expect("we may");
    load(compiler(usual()), &file.join("compiled"), &component).expect("it is compiled");
    // The author of the link may have chosen its target.
    fs::create_dir(&elsewhere).expect("we may");
    symlink(&elsewhere, &link).expect("we may");
    load(compiler(usual()), &link, &component).expect("it is compiled");
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
}

#[test]
fn key_that_others_can_read_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    load(compiler(usual()), folder.path(), &component).expect("it is compiled");
    let key = folder.path().join("key");
    let known = fs::read(&key).expect("a key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).expect("ours");
    assert!(
        matches!(load(none(usual()), folder.path(), &component), Err(LoadError::Host(_))),
        "anybody with the key could have written the code"
    );
    assert_ne!(fs::read(&key).expect("a key"), known);
    assert_eq!(fs::metadata(&key).expect("a key").permissions().mode() & 0o777, 0o600);
}

#[test]
fn concurrent_programs_all_get_their_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("compiled");
    let components = [guest(ECHO), guest("(i32.const 0)"), guest("(i32.const 1)")];
    std::thread::scope(|scope| {
        for at in 0..6 {
            let (path, component) = (&path, &components[at % 3]);
            scope.spawn(move || {
                // Room for one file, so that the programs remove each other's files.
                let sandbox = open(compiler(usual()), path, 1);
                sandbox.load(Digest::of(component), component, Capabilities::default()).expect("it loads");
            });
        }
    });
    all_that_is_kept_is_whole(&path, &components);
    load(compiler(usual()), &path, &components[0]).expect("it loads");
    load(none(usual()), &path, &components[0]).expect("it is kept");
}

#[test]
fn sandboxes_of_one_program_write_separate_files() {
    let folder = tempfile::tempdir().expect("a folder");
    // Large enough for many writes, and each of another size.
    let components: Vec<_> = (1..=6)
        .map(|size| guest(&format!("{ECHO}{}", "(drop (i32.load (i32.const 0)))".repeat(size * 2_000))))
        .collect();
    std::thread::scope(|scope| {
        for component in &components {
            let path = folder.path();
            scope.spawn(move || {
                let sandbox = open(compiler(usual()), path, 1 << 30);
                sandbox.load(Digest::of(component), component, Capabilities::default()).expect("it loads");
            });
        }
    });
    assert_eq!(code(folder.path()).len(), components.len(), "all of them are kept");
    all_that_is_kept_is_whole(folder.path(), &components);
}

/// Checks that every cached file is complete and no unfinished file is left.
fn all_that_is_kept_is_whole(folder: &Path, components: &[Vec<u8>]) {
    let sandbox = open(none(usual()), folder, 1 << 30);
    let is_kept =
        |component: &&Vec<u8>| sandbox.load(Digest::of(component), component, Capabilities::default()).is_ok();
    assert_eq!(components.iter().filter(is_kept).count(), code(folder).len());
    let names = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
    let names: Vec<_> = names.map(|name| name.into_string().expect("text")).collect();
    assert!(!names.iter().any(|name| name.contains("draft-")), "{names:?}");
}

#[test]
fn only_files_of_killed_programs_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let draft = |name: &str, age: u64| {
        let file = fs::File::create(folder.path().join(name)).expect("we may");
        let now = file.metadata().expect("ours").modified().expect("a time");
        file.set_modified(now - std::time::Duration::from_secs(age)).expect("ours");
    };
    draft("draft-1-0", 2 * 60 * 60);
    draft("key.draft-1", 2 * 60 * 60);
    draft("draft-2-0", 30 * 60);
    load(compiler(usual()), folder.path(), &guest(ECHO)).expect("it is compiled");
    let there = |name: &str| folder.path().join(name).exists();
    assert_eq!((there("draft-1-0"), there("key.draft-1"), there("draft-2-0")), (false, false, true));
}

/// A host with a folder of its own that may copy from the user's.
fn host(compiler: ChildCompiler, own: &Path, user: &Path) -> Sandbox {
    let settings = SandboxSettings {
        cache: Some(own.to_owned()),
        user_cache: Some(user.to_owned()),
        compiler: Compiler::Child(compiler),
        pool: 2,
        ..SandboxSettings::default()
    };
    Sandbox::new(settings).expect("a sandbox")
}

fn serve(compiler: ChildCompiler, (own, user): (&Path, &Path), component: &[u8]) -> Result<(), LoadError> {
    let plugin = host(compiler, own, user).load(Digest::of(component), component, Capabilities::default())?;
    assert_eq!(value(run(&plugin, &tight()).ended), "{}");
    Ok(())
}

#[test]
fn a_host_copies_code_that_a_command_compiled() {
    let folder = tempfile::tempdir().expect("a folder");
    let (user, own) = (folder.path().join("user"), folder.path().join("own"));
    let component = guest(ECHO);
    let missing = serve(none(usual()), (&own, &user), &component);
    assert!(matches!(missing, Err(LoadError::Host(_))), "nobody has compiled it");
    assert!(!user.exists(), "a host makes nothing there");

    load(compiler(usual()), &user, &component).expect("it is compiled");
    let packed = section::with(&component, b"what it declares").expect("a component");
    serve(none(usual()), (&own, &user), &packed).expect("the code is copied");
    fs::remove_dir_all(&user).expect("ours");
    serve(none(usual()), (&own, &user), &packed).expect("the copy stays");
}

#[test]
fn a_host_copies_only_what_its_user_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let (user, link) = (folder.path().join("user"), folder.path().join("link"));
    let component = guest(ECHO);
    load(compiler(usual()), &user, &component).expect("it is compiled");
    symlink(&user, &link).expect("we may");
    let (own, mut hosts) = (|number: u32| folder.path().join(format!("own-{number}")), 0..);
    let mut copies = |bounds, user: &Path| {
        let own = own(hosts.next().expect("a number"));
        !matches!(serve(none(bounds), (&own, user), &component), Err(LoadError::Host(_)))
    };
    assert!(copies(usual(), &user), "all is well");
    assert!(!copies(CompileBounds { time: usual().time / 2, ..usual() }, &user), "this host has tighter bounds");
    assert!(!copies(usual(), &link), "the author of a link may have chosen its target");

    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    allow(&user, 0o770);
    assert!(!copies(usual(), &user), "others can write there");
    allow(&user, 0o700);
    allow(&user.join("key"), 0o640);
    assert!(!copies(usual(), &user), "others can read the key");
    allow(&user.join("key"), 0o600);

    let [file] = &code(&user)[..] else { panic!("one file") };
    let mut bad = fs::read(file).expect("it is there");
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    fs::write(file, &bad).expect("we may");
    assert!(!copies(usual(), &user), "a changed byte");
}
