//! Compiled code is kept, and nothing is loaded that this host did not write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use domain::Digest;
use toolgate_sandbox::{Capabilities, Sandbox, Settings};

use crate::guests::guest;
use crate::world::{run, tight, value};

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

fn open(folder: &Path) -> Sandbox {
    Sandbox::new(Settings { cache: Some(folder.to_owned()), pool: 2, ..Settings::default() }).expect("a sandbox")
}

fn works(sandbox: &Sandbox, component: &[u8]) {
    let plugin = sandbox.load(Digest::of(component), component, Capabilities::default()).expect("it loads");
    assert_eq!(value(run(&plugin, &tight()).outcome), "{}");
}

fn code(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "cwasm")).collect();
    files.sort();
    files
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}

#[test]
fn code_is_compiled_once_and_kept_for_this_user_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("compiled");
    let component = guest(ECHO);
    works(&open(&path), &component);
    let [file] = &code(&path)[..] else { panic!("one file") };
    assert_eq!((mode(&path), mode(file), mode(&path.join("key"))), (0o700, 0o600, 0o600));

    // Another process of the same host: it takes the file, which is left as it is.
    let before = fs::metadata(file).expect("it exists").modified().expect("a time");
    works(&open(&path), &component);
    assert_eq!(fs::metadata(file).expect("it exists").modified().expect("a time"), before);
}

type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn a_file_that_was_changed_is_compiled_anew() {
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
        // Compiling is deterministic, so what was written in its place is what had been there.
        assert!(fs::read(file).expect("it is there") == good, "damage {index} was not repaired");
    }
}

#[test]
fn code_of_another_component_or_of_another_host_is_not_loaded() {
    let (one, two) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (echo, crash) = (guest(ECHO), guest("(unreachable)"));
    let host = open(one.path());
    works(&host, &echo);
    let [echo_file] = &code(one.path())[..] else { panic!("one file") };
    host.load(Digest::of(&crash), &crash, Capabilities::default()).expect("it loads");
    let files = code(one.path());
    let crash_file = files.iter().find(|file| *file != echo_file).expect("a second file");

    // The crashing code, sealed by this very host, under the name of the echo.
    fs::copy(crash_file, echo_file).expect("we may");
    works(&open(one.path()), &echo);

    // The same under the same name, sealed by another host.
    let other = open(two.path());
    fs::copy(crash_file, two.path().join(echo_file.file_name().expect("a name"))).expect("we may");
    works(&other, &echo);
}

#[test]
fn without_its_key_a_cache_is_worthless_and_harmless() {
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
        assert!(fs::read(file).expect("it is there") != good, "sealed under another key now");
    }
}
