//! Kills the real host a hundred times at random moments. Afterwards, nothing acknowledged is lost, nothing was resolved
//! twice, the ledger's sums are right, and every turn settles. `cargo xtask kills` does it more often, and also with full
//! disks, reloads and retention.

use toolgate_tests::host::say;
use toolgate_tests::kills::{self, Plan};

const ROUNDS: u32 = 100;

#[test]
fn hundred_kills_lose_nothing_and_repeat_nothing() {
    let plan = Plan { rounds: ROUNDS, seed: 0x7001_6a7e, checked_every: ROUNDS, disturbed: false, say };
    let tally = kills::run(plan, &String::new);
    assert_eq!(tally.kills, ROUNDS);
    say(&format!("{tally:?}"));
}
