//! A short soak of the real host. `cargo xtask soak` runs longer ones.

use toolgate_tests::host::say;
use toolgate_tests::soak::{self, Plan};

#[test]
fn five_thousand_turns_leave_the_host_flat() {
    let report = soak::run(Plan { turns: 5_000, seed: 0x50a4, say }).unwrap();
    report.rows.iter().for_each(|row| say(&row.to_string()));
    assert!(report.rows.iter().all(soak::Flatness::is_flat), "{:#?}", report.rows);
    assert!(report.kinds.iter().all(|(_, turns)| *turns > 0), "{:?}", report.kinds);
}
