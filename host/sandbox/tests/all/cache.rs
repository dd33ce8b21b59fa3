//! Compiled code is cached, and the host loads only code that it wrote itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use capabilities::Capabilities;
use domain::Digest;
use toolgate_sandbox::{Sandbox, SandboxSettings};
use toolgate_tests::wat::guest;

use crate::world::{run, tight, value};

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

fn open(folder: &Path) -> Sandbox {
    Sandbox::new(SandboxSettings { cache: Some(folder.to_owned()), pool: 2, ..SandboxSettings::default() })
        .expect("a sandbox")
}

fn works(sandbox: &Sandbox, component: &[u8]) {
    let plugin = sandbox.load(Digest::of(component), component, Capabilities::default()).expect("it loads");
    assert_eq!(value(run(&plugin, &tight()).ended), "{}");
}

pub(crate) fn code(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "cwasm")).collect();
    files.sort();
    files
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}

#[test]
fn code_is_compiled_once_and_cached_for_this_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("compiled");
    let component = guest(ECHO);
    works(&open(&path), &component);
    let [file] = &code(&path)[..] else { panic!("one file") };
    assert_eq!((mode(&path), mode(file), mode(&path.join("key"))), (0o700, 0o600, 0o600));

    // Another process of the same host uses the file without changing it.
    let before = fs::metadata(file).expect("it exists").modified().expect("a time");
    works(&open(&path), &component);
    assert_eq!(fs::metadata(file).expect("it exists").modified().expect("a time"), before);
}

type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn a_changed_file_is_compiled_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    works(&open(folder.path()), &component);
    let [file] = &code(folder.path())[..] else { panic!("one file") };
    let good = fs::read(file).expect("it is there");
    let damage: [Damage<'_>; 6] = [
        &|bytes| bytes.clear(),
        &|bytes| bytes.truncate(20),
        &|bytes| bytes.truncate(bytes.len() - 1),
        &|bytes| bytes[good.len() / 2] ^= 1,
        &|bytes| *bytes.last_mut().expect("a tag") ^= 1,
        &|bytes| bytes.extend_from_slice(b"more"),
    ];
    for (index, damage) in damage.iter().enumerate() {
        let mut bytes = good.clone();
        damage(&mut bytes);
        fs::write(file, &bytes).expect("we may");
        works(&open(folder.path()), &component);
        // Compiling is deterministic, so the new file equals the old one.
        assert!(fs::read(file).expect("it is there") == good, "damage {index} was not repaired");
    }
}

#[test]
fn code_of_another_component_or_host_is_not_loaded() {
    let (one, two) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (echo, crash) = (guest(ECHO), guest("(unreachable)"));
    let host = open(one.path());
    works(&host, &echo);
    let [echo_file] = &code(one.path())[..] else { panic!("one file") };
    host.load(Digest::of(&crash), &crash, Capabilities::default()).expect("it loads");
    let files = code(one.path());
    let crash_file = files.iter().find(|file| *file != echo_file).expect("a second file");

    // The code of the crashing component, signed by this host, under the name of the echo.
    fs::copy(crash_file, echo_file).expect("we may");
    works(&open(one.path()), &echo);

    // The right code under the right name, signed by another host.
    let other = open(two.path());
    fs::copy(crash_file, two.path().join(echo_file.file_name().expect("a name"))).expect("we may");
    works(&other, &echo);
}

#[test]
fn cache_without_its_key_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let component = guest(ECHO);
    works(&open(folder.path()), &component);
    let [file] = &code(folder.path())[..] else { panic!("one file") };
    let good = fs::read(file).expect("it is there");
    for key in [None, Some("short"), Some("01234567890123456789012345678901")] {
        fs::remove_file(folder.path().join("key")).expect("we may");
        if let Some(key) = key {
            fs::write(folder.path().join("key"), key).expect("we may");
        }
        works(&open(folder.path()), &component);
        assert!(fs::read(file).expect("it is there") != good, "now signed with another key");
    }
}

#[test]
fn unused_code_and_code_of_other_engines_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = open(folder.path());
    let (echo, crash) = (guest(ECHO), guest("(unreachable)"));
    works(&host, &echo);
    host.load(Digest::of(&crash), &crash, Capabilities::default()).expect("it loads");
    let [one, _] = &code(folder.path())[..] else { panic!("two files") };
    let name = one.file_name().expect("a name").to_str().expect("text");
    let foreign = folder.path().join(name.replace(&name[..16], "0123456789abcdef"));
    fs::copy(one, foreign).expect("we may");
    fs::write(folder.path().join("draft-1-0"), "half").expect("we may");
    fs::write(folder.path().join("notes"), "not ours").expect("we may");

    let kept = [Digest::of(&echo)].into();
    assert_eq!(host.retain(&kept).expect("it may"), 3, "the other component, the other engine, the draft");
    let [file] = &code(folder.path())[..] else { panic!("one file") };
    assert!(file.to_str().expect("text").contains(&Digest::of(&echo).hex()));
    assert!(folder.path().join("key").exists() && folder.path().join("notes").exists());
    assert_eq!(host.retain(&kept).expect("it may"), 0);
    works(&host, &echo);
}

#[test]
fn oldest_code_is_evicted_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = |cache_bytes| SandboxSettings {
        cache: Some(folder.path().to_owned()),
        cache_bytes,
        pool: 2,
        ..SandboxSettings::default()
    };
    let bodies = ["(i32.const 0)", "(i32.const 1)", "(i32.const 2)"].map(guest);
    let load = |cache_bytes, body: &[u8]| {
        let host = Sandbox::new(settings(cache_bytes)).expect("a sandbox");
        host.load(Digest::of(body), body, Capabilities::default()).expect("it loads");
        let files = code(folder.path());
        files.iter().map(|file| fs::metadata(file).expect("it exists").len()).collect::<Vec<_>>()
    };
    let one = load(u64::MAX, &bodies[0])[0];
    assert_eq!(load(u64::MAX, &bodies[1]).len(), 2);
    let oldest = fs::File::options().write(true).open(
        code(folder.path())
            .iter()
            .find(|file| file.to_str().expect("text").contains(&Digest::of(&bodies[1]).hex()))
            .expect("kept"),
    );
    oldest.expect("ours").set_modified(std::time::UNIX_EPOCH).expect("we may");
    assert_eq!(load(2 * one + one / 2, &bodies[2]).len(), 2);
    let left: Vec<_> = code(folder.path()).iter().map(|file| file.to_str().expect("text").to_owned()).collect();
    assert!(
        !left.iter().any(|file| file.contains(&Digest::of(&bodies[1]).hex())),
        "the oldest code is removed: {left:?}"
    );
    assert_eq!(load(1, &bodies[1]).len(), 1, "the newest code is always kept");
}
