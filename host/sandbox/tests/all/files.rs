//! A plugin reaches only its granted folders and its own configuration values.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capabilities::filesystem::{Folder, FolderHandle};
use capabilities::secrets::{Secret, SecretPlace, SecretValue};
use capabilities::{Capabilities, Capability, Grants, HostPattern};
use domain::{Digest, Limits, Timestamp, outcome::FailureCode};
use toolgate_sandbox::{Durable, GuestEnd, Job, Plugin};
use toolgate_tests::wat::Wat;

use crate::world::{RUNTIME, failed, job, load, nowhere, sandbox, tight, value};

/// A guest with its first folder in `$dir`, if it has one. `$open` opens the path in its arguments and returns 0, or 1
/// and the number of the error.
fn filer(run: &str) -> Plugin {
    let items = "(data (i32.const 4096) \"file\") (data (i32.const 4104) \"twin\")
      (data (i32.const 4112) \"in\") (data (i32.const 4116) \"was\") (data (i32.const 4120) \"../beside\") (global $dir (mut i32) (i32.const 0)) (global $file (mut i32) (i32.const 0)) (global $times (mut i32) (i32.const 0))
      (func $open (param $path i32) (param $len i32) (param $how i32) (param $flags i32) (result i32)
        (call $open_at (global.get $dir) (i32.const 1) (local.get $path) (local.get $len) (local.get $how) (local.get $flags) (i32.const 32))
        (global.set $file (i32.load (i32.const 36)))
        (if (result i32) (i32.load8_u (i32.const 32))
          (then (i32.add (i32.const 1) (i32.load8_u (i32.const 36)))) (else (i32.const 0))))";
    let run = format!(
        "(call $folders (i32.const 32))
         (if (i32.load (i32.const 36)) (then (global.set $dir (i32.load (i32.load (i32.const 32))))))
         {run}"
    );
    let wat = Wat {
        body: &run,
        items,
        imports: r#"
          (import "wasi:filesystem/preopens@0.2.12" "get-directories" (func $folders (param i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.open-at" (func $open_at (param i32 i32 i32 i32 i32 i32 i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.write" (func $write (param i32 i32 i32 i64 i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.write-via-stream" (func $write_from (param i32 i64 i32)))
          (import "wasi:filesystem/types@0.2.12" "[resource-drop]descriptor" (func $close (param i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.read" (func $read (param i32 i64 i64 i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.rename-at" (func $rename (param i32 i32 i32 i32 i32 i32 i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.symlink-at" (func $symlink (param i32 i32 i32 i32 i32 i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.link-at" (func $link (param i32 i32 i32 i32 i32 i32 i32 i32)))
          (import "wasi:filesystem/types@0.2.12" "[method]descriptor.read-directory" (func $list (param i32 i32)))"#,
        world: "import wasi:filesystem/preopens@0.2.12; import wasi:filesystem/types@0.2.12;",
        ..Wat::default()
    };
    load(&wat.build())
}

fn folder(path: &Path, at: &str, write: bool) -> Folder {
    // One folder of the tests does not exist.
    let handle = FolderHandle::open(path).unwrap_or_default();
    Folder { path: path.to_owned(), at: at.into(), write, handle }
}

fn run(plugin: &Plugin, folder: Option<(&Path, bool)>, path: &str, limits: &Limits) -> GuestEnd {
    let folders = folder.map(|(path, write)| self::folder(path, "/data", write));
    let grants = Grants { folders: folders.into_iter().collect(), ..Grants::default() };
    let job = Job { grants: Arc::new(grants), ..job("filer", path) };
    RUNTIME.block_on(plugin.run(&job, limits, Arc::new(())))
}

/// Opens the path for reading, or creates it.
fn opens(how: u32, flags: u32) -> Plugin {
    filer(&format!(
        "(call $ok_number (i64.extend_i32_u (call $open (local.get $args) (local.get $args_len) (i32.const {how}) (i32.const {flags}))))"
    ))
}

#[test]
fn only_the_granted_folder_is_reachable() {
    let place = tempfile::tempdir().expect("a folder");
    let (inside, outside) = (place.path().join("in"), place.path().join("secret"));
    std::fs::create_dir(&inside).expect("a folder");
    std::fs::write(&outside, "secret").expect("a file");
    std::fs::write(inside.join("file"), "data").expect("a file");
    std::os::unix::fs::symlink("../secret", inside.join("out")).expect("a link");
    std::os::unix::fs::symlink("file", inside.join("within")).expect("a link");
    let made = std::process::Command::new("mkfifo").arg(inside.join("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    let (read, make) = (opens(0, 1), opens(1, 2));
    const DENIED: &str = "32";
    for (path, may_write, reading, making) in [
        ("file", false, "0", DENIED),
        ("within", false, "0", DENIED),
        ("new", false, "21", DENIED),
        ("../secret", true, DENIED, DENIED),
        ("out", true, DENIED, DENIED),
        ("/etc/passwd", true, DENIED, DENIED),
        // Opening a pipe without a writer would never return.
        ("pipe", true, DENIED, DENIED),
        ("new", true, "21", "0"),
    ] {
        let result = |plugin| value(run(plugin, Some((&inside, may_write)), path, &tight()).ended);
        assert_eq!((result(&read).as_str(), result(&make).as_str()), (reading, making), "{path}, writing: {may_write}");
    }
    assert_eq!(std::fs::read(&outside).expect("it is there"), b"secret");
    let folders = filer("(call $ok_number (i64.extend_i32_u (i32.load (i32.const 36))))");
    assert_eq!(value(run(&folders, None, "", &tight()).ended), "0", "without a grant there is no folder");
    let gone = run(&folders, Some((&place.path().join("gone"), false)), "", &tight());
    failed(gone.ended, FailureCode::HostFault);
}

#[test]
fn durable_call_sees_no_folder() {
    let place = tempfile::tempdir().expect("a folder");
    let folders = filer("(call $ok_number (i64.extend_i32_u (i32.load (i32.const 36))))");
    let grants = Grants { folders: vec![folder(place.path(), "/data", true)], ..Grants::default() };
    let plain = Job { grants: Arc::new(grants), ..job("filer", "") };
    let (started_at, steps, journal, decided) = (Timestamp::from_millis(0), [].into(), [].into(), [].into());
    let durable = Some(Durable { started_at, steps, journal, decided });
    let durable = Job { durable, recording: Some(nowhere()), ..plain.clone() };
    for (job, seen) in [(plain, "1"), (durable, "0")] {
        assert_eq!(value(RUNTIME.block_on(folders.run(&job, &tight(), Arc::new(()))).ended), seen);
    }
}

/// A folder with a file and a link out of it, and a secret beside it.
fn beside_a_secret() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a folder");
    let inside = place.path().join("in");
    std::fs::create_dir(&inside).expect("a folder");
    std::fs::write(place.path().join("secret"), "Secret").expect("a file");
    std::fs::write(inside.join("file"), "data").expect("a file");
    std::os::unix::fs::symlink("../secret", inside.join("out")).expect("a link");
    (place, inside)
}

#[test]
fn moves_and_links_stay_within_one_folder() {
    // The path in the arguments is the target. `$answer` is 0 on success.
    let answer = "(call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 32))))";
    let rename = filer(&format!(
        "(call $rename (global.get $dir) (i32.const 4096) (i32.const 4) (global.get $dir) (local.get $args) (local.get $args_len) (i32.const 32)) {answer}"
    ));
    let link = |follow: u32| {
        filer(&format!(
            "(call $link (global.get $dir) (i32.const {follow}) (local.get $args) (local.get $args_len) (global.get $dir) (i32.const 4104) (i32.const 4) (i32.const 32)) {answer}"
        ))
    };
    for (plugin, path, may_write) in [
        (&rename, "../stolen", true),
        (&rename, "/tmp/stolen", true),
        (&rename, "other", false),
        (&link(0), "../secret", true),
        (&link(1), "out", true),
        (&link(0), "file", false),
    ] {
        let (place, inside) = beside_a_secret();
        let done = value(run(plugin, Some((&inside, may_write)), path, &tight()).ended);
        assert_eq!(done, "1", "{path}, writing: {may_write}");
        assert_eq!(std::fs::read(inside.join("file")).expect("it is where it was"), b"data");
        assert!(!inside.join("twin").exists() && !place.path().join("stolen").exists(), "{path}");
    }
    let (_place, inside) = beside_a_secret();
    assert_eq!(
        value(run(&rename, Some((&inside, true)), "moved", &tight()).ended),
        "0",
        "inside the folder it is moved"
    );
}

/// One call renames the inner of two granted folders and replaces it by a link out of both. The next call opens the
/// inner folder's file.
#[test]
fn symlink_that_replaces_a_granted_folder_is_not_followed() {
    let place = tempfile::tempdir().expect("a folder");
    let (outer, inner, beside) =
        (place.path().join("outer"), place.path().join("outer/in"), place.path().join("beside"));
    for (folder, text) in [(&inner, "inner"), (&beside, "outside")] {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("file"), text).expect("a file");
    }
    let folders = vec![folder(&outer, "/outer", true), folder(&inner, "/inner", false)];
    let grants = Arc::new(Grants { folders, ..Grants::default() });
    let call = |run: &str| {
        let plugin = filer(run);
        let job = Job { grants: Arc::clone(&grants), ..job("filer", "file") };
        value(RUNTIME.block_on(plugin.run(&job, &tight(), Arc::new(()))).ended)
    };
    let swapped = call(
        "(call $rename (global.get $dir) (i32.const 4112) (i32.const 2) (global.get $dir) (i32.const 4116) (i32.const 3) (i32.const 32))
         (call $symlink (global.get $dir) (i32.const 4120) (i32.const 9) (i32.const 4112) (i32.const 2) (i32.const 40))
         (call $ok_number (i64.extend_i32_u (i32.add (i32.load8_u (i32.const 32)) (i32.load8_u (i32.const 40)))))",
    );
    assert_eq!(swapped, "0", "the plugin may rename in a writable folder");
    assert_eq!(std::fs::read(inner.join("file")).expect("the link is followed here"), b"outside");
    let read = call(
        "(call $folders (i32.const 32))
         (global.set $dir (i32.load offset=12 (i32.load (i32.const 32))))
         (if (call $open (local.get $args) (local.get $args_len) (i32.const 0) (i32.const 1)) (then (unreachable)))
         (call $read (global.get $file) (i64.const 100) (i64.const 0) (i32.const 48))
         (call $ok_number (i64.load32_u (i32.const 56)))",
    );
    assert_eq!(read, "5", "the bytes of `inner`, not of `outside`");
}

#[test]
fn file_of_a_read_only_folder_is_not_truncated() {
    let (_place, inside) = beside_a_secret();
    const TRUNCATE: u32 = 8;
    for flags in [1, 2, 3] {
        let ended = run(&opens(TRUNCATE, flags), Some((&inside, false)), "file", &tight());
        assert_ne!(value(ended.ended), "0", "{flags}");
        assert_eq!(std::fs::read(inside.join("file")).expect("it is there"), b"data");
    }
}

#[test]
fn symlink_that_replaces_a_file_is_not_followed() {
    let (_place, inside) = beside_a_secret();
    std::fs::write(inside.join("race"), "data").expect("a file");
    let over = Arc::new(AtomicBool::new(false));
    let (folder, ended) = (inside.clone(), over.clone());
    let swapping = std::thread::spawn(move || {
        let mut swaps = 0_u64;
        while !ended.load(Ordering::Relaxed) {
            std::os::unix::fs::symlink("../secret", folder.join("next")).expect("a link");
            std::fs::rename(folder.join("next"), folder.join("race")).expect("renamed");
            std::fs::write(folder.join("next"), "data").expect("a file");
            std::fs::rename(folder.join("next"), folder.join("race")).expect("renamed");
            swaps += 1;
        }
        swaps
    });
    // Opens it three hundred times. Returns the number of reads of its own file, plus a million for each read of the
    // secret.
    let plugin = filer(
        "(loop $again
           (if (i32.eqz (call $open (local.get $args) (local.get $args_len) (i32.const 0) (i32.const 1)))
             (then
               (call $read (global.get $file) (i64.const 1) (i64.const 0) (i32.const 48))
               (if (i32.and (i32.eqz (i32.load8_u (i32.const 48))) (i32.load (i32.const 56)))
                 (then (i64.store (i32.const 4200) (i64.add (i64.load (i32.const 4200))
                   (select (i64.const 1000000) (i64.const 1)
                     (i32.eq (i32.load8_u (i32.load (i32.const 52))) (i32.const 83)))))))
               (call $close (global.get $file))))
           (global.set $times (i32.add (global.get $times) (i32.const 1)))
           (br_if $again (i32.lt_u (global.get $times) (i32.const 300))))
         (call $ok_number (i64.load (i32.const 4200)))",
    );
    let limits = Limits { time: domain::Span::from_secs(600), memory: 64 << 20, ..tight() };
    // On a busy machine, the link may be there the whole time.
    let read: u64 = loop {
        let end = run(&plugin, Some((&inside, false)), "race", &limits);
        let read = value(end.ended).parse().expect("a number");
        if read > 0 {
            break read;
        }
    };
    over.store(true, Ordering::Relaxed);
    assert!(swapping.join().expect("no panic") > 0);
    assert!(read < 1_000_000, "{read}");
}

#[test]
fn bytes_written_to_files_are_limited() {
    let place = tempfile::tempdir().expect("a folder");
    let plugin = filer(
        "(if (call $open (local.get $args) (local.get $args_len) (i32.const 1) (i32.const 2)) (then (unreachable)))
         (call $write (global.get $file) (i32.const 0) (i32.const 5000) (i64.const 0) (i32.const 48))
         (call $ok_number (i64.load (i32.const 56)))",
    );
    let limits = |files_written| Limits { files_written, ..tight() };
    let end = run(&plugin, Some((place.path(), true)), "a", &limits(4096 + 5000));
    assert!(end.spent.is_some_and(|spent| spent.bytes_out >= 5000), "{:?}", end.spent);
    assert_eq!(value(end.ended), "5000");
    let over = run(&plugin, Some((place.path(), true)), "b", &limits(4096 + 4999));
    assert!(failed(over.ended, FailureCode::LimitExceeded).contains("`limits.files_written_bytes`"));
    assert_eq!(std::fs::read(place.path().join("b")).expect("it was made"), b"");
}

#[test]
fn write_beyond_the_end_also_pays_for_the_gap() {
    let place = tempfile::tempdir().expect("a folder");
    for (way, write) in [
        ("at once", "(call $write (global.get $file) (i32.const 0) (i32.const 1) (local.get $at) (i32.const 48))"),
        ("as a stream", "(call $write_from (global.get $file) (local.get $at) (i32.const 48))"),
    ] {
        let plugin = |at: u64| {
            let write = write.replace("(local.get $at)", &format!("(i64.const {at})"));
            filer(&format!(
                "(if (call $open (local.get $args) (local.get $args_len) (i32.const 1) (i32.const 2)) (then (unreachable)))
                 {write} {write}
                 (call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 48))))"
            ))
        };
        let limits = Limits { files_written: 20_000, ..tight() };
        let end = |at: u64, path: &str| run(&plugin(at), Some((place.path(), true)), path, &limits).ended;
        assert_eq!(value(end(15_000, "near")), "0", "{way}: the gap is charged once");
        for at in [16_000, 1 << 40] {
            let why = failed(end(at, "far"), FailureCode::LimitExceeded);
            assert!(why.contains("`limits.files_written_bytes`"), "{way}: {why}");
        }
        assert_eq!(std::fs::metadata(place.path().join("far")).expect("it was made").len(), 0, "{way}");
        std::fs::remove_file(place.path().join("near")).expect("it was made");
    }
}

#[test]
fn open_files_are_limited_and_charged() {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("file"), "").expect("a file");
    let opened = |times: u32, then: &str, host_bytes| {
        let plugin = filer(&format!(
            "(loop $again
               (if (call $open (local.get $args) (local.get $args_len) (i32.const 0) (i32.const 1)) (then (unreachable)))
               {then}
               (global.set $times (i32.add (global.get $times) (i32.const 1)))
               (br_if $again (i32.lt_u (global.get $times) (i32.const {times}))))
             (call $ok_number (i64.extend_i32_u (global.get $times)))"
        ));
        run(&plugin, Some((place.path(), false)), "file", &Limits { host_bytes, ..tight() }).ended
    };
    assert_eq!(value(opened(32, "", 1 << 20)), "32");
    let why = failed(opened(33, "", 1 << 20), FailureCode::LimitExceeded);
    assert!(why.contains("more than 32 files and folders open"), "{why}");
    assert_eq!(value(opened(200, "(call $close (global.get $file))", 1 << 20)), "200", "a closed file does not count");
    let why = failed(opened(10, "", 9 * 4096), FailureCode::LimitExceeded);
    assert!(why.contains("`limits.host_bytes`"), "{why}");
}

#[test]
fn a_listing_is_charged_to_the_calls_host_memory() {
    let place = tempfile::tempdir().expect("a folder");
    for n in 0..100 {
        std::fs::write(place.path().join(format!("{n:0100}")), "").expect("a file");
    }
    let plugin = filer(
        "(call $list (global.get $dir) (i32.const 32)) (call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 32))))",
    );
    let list = |host_bytes| run(&plugin, Some((place.path(), false)), "", &Limits { host_bytes, ..tight() });
    assert_eq!(value(list(1 << 20).ended), "0");
    assert!(failed(list(10_000).ended, FailureCode::LimitExceeded).contains("`limits.host_bytes`"));
}

#[test]
fn a_plugin_gets_its_values_and_placeholders_of_its_secrets() {
    let wat = Wat {
        body: "(call $get (local.get $args) (local.get $args_len) (i32.const 32))
          (if (i32.load8_u (i32.const 32)) (then (unreachable)))
          (if (i32.eqz (i32.load8_u (i32.const 36))) (then (return (call $ok_number (i64.const 0)))))
          (i32.store8 (i32.const 4096) (i32.const 34))
          (memory.copy (i32.const 4097) (i32.load (i32.const 40)) (i32.load (i32.const 44)))
          (i32.store8 (i32.add (i32.const 4097) (i32.load (i32.const 44))) (i32.const 34))
          (call $ok (i32.const 4096) (i32.add (i32.const 2) (i32.load (i32.const 44))))",
        imports: r#"(import "wasi:config/store@0.2.0-rc.1" "get" (func $get (param i32 i32 i32)))"#,
        world: "import wasi:config/store@0.2.0-rc.1;",
        ..Wat::default()
    };
    let component = wat.build();
    let plugin =
        sandbox().load(Digest::of(&component), &component, Capabilities::of([Capability::Config])).expect("it loads");
    let secret = Secret {
        name: "token".into(),
        value: SecretValue::new("hunter2hunter2").expect("long enough"),
        hosts: vec!["example.com".parse::<HostPattern>().expect("a host")],
        places: vec![SecretPlace::Header("authorization".into())],
    };
    let config = [("greeting".to_owned(), "hello".to_owned())].into();
    let grants = Arc::new(Grants { config: Some(config), secrets: vec![secret], ..Grants::default() });
    let get = |name: &str, grants: &Arc<Grants>| {
        let job = Job { grants: grants.clone(), ..job("test", name) };
        value(RUNTIME.block_on(plugin.run(&job, &tight(), Arc::new(()))).ended)
    };
    assert_eq!(get("greeting", &grants), "\"hello\"");
    assert_eq!(get("other", &grants), "0");
    let placeholder = get("token", &grants);
    assert!(placeholder.starts_with("\"toolgate-secret-") && !placeholder.contains("hunter2"), "{placeholder}");
    assert_eq!(get("greeting", &Arc::default()), "0", "another plugin's values are not visible");
}
