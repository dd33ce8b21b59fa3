//! A loss of power brings no revoked session back. The test records the file's writes and syncs, and opens contents that
//! the disk can have afterwards, as `tests/tests/power_loss.rs` does for the store.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use server::RevokedSessions as _;
use toolgate_tests::parts::Part;
use toolgate_tests::power_loss::{Recording, traced};
use toolgate_tests::random::Random;
use toolgate_tests::strace;

use super::tests::{at, at_once, session};
use super::{QUEUE, RevokedFile};

const CONTENTS: u64 = 300;

/// A file of this name in its working folder tells the test that it is the recorded program.
const CHILD: &str = "recorded";

/// Revokes sessions one by one, and then so often the same ones that the file is rewritten.
fn revoke_sessions() {
    let folder = fs::canonicalize("data").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let revoked = RevokedFile::open(&folder.join("ended-sessions"), at(0)).unwrap();
    runtime.block_on(async {
        for life in 0..2 {
            for id in 0..20 {
                let id = life * 100 + id;
                revoked.revoke(session("a", id, 1_000), at(0)).await.unwrap();
                std::io::stdout().write_all(format!("acknowledged {id}\n").as_bytes()).unwrap();
            }
            let again: Vec<_> = (0..QUEUE).map(|_| session("a", 0, 1_000)).collect();
            for _ in 0..6 {
                at_once(&revoked, &again).await.into_iter().for_each(Result::unwrap);
            }
        }
    });
}

#[test]
fn power_loss_brings_no_revoked_session_back() {
    if Path::new(CHILD).exists() {
        return revoke_sessions();
    }
    if Part::Syscalls.is_left_out() {
        return;
    }
    strace::check();
    let folder = tempfile::tempdir().unwrap();
    let above = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(above.join("data")).unwrap();
    fs::write(above.join(CHILD), "").unwrap();
    let child = traced(&above.join("trace"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "revoked::power_loss::power_loss_brings_no_revoked_session_back", "--nocapture"])
        .current_dir(&above)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let mut recording = Recording::of(&above.join("data"));
    recording.add(&fs::read_to_string(above.join("trace")).unwrap());
    assert_eq!(recording.after_acknowledgements().len(), 40);
    assert!(recording.last_before(usize::MAX, usize::MAX).matches("rename").count() > 1, "it was never rewritten");
    let moments = [recording.after_acknowledgements(), recording.after_changes()].concat();
    for number in 0..CONTENTS {
        let mut random = Random::new(number);
        let moment = *random.pick(&moments);
        let content = tempfile::tempdir().unwrap();
        recording.after_loss(moment, &mut random).write_to(content.path()).unwrap();
        let revoked = RevokedFile::open(&content.path().join("ended-sessions"), at(0)).unwrap();
        for id in recording.acknowledged_before(moment) {
            let known = revoked.has(&session("a", id.parse().unwrap(), 1_000));
            assert!(known, "content {number}: session {id} came back\n{}", recording.last_before(moment, 20));
        }
    }
}
