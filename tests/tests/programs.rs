//! Random programs of a durable call with kills: the short form. `cargo xtask kills --programs 10000` is the long one.

#[path = "journal/buckets.rs"]
mod buckets;
#[path = "programs/model.rs"]
mod model;

use model::Plan;
use toolgate_tests::host::say;

#[test]
fn kills_change_nothing_about_random_programs() {
    let tally = model::run(Plan { kills: 500, seed: 0x7001_6a7e });
    say(&format!("{tally:#?}"));
    assert!(tally.refused > 0 && tally.in_doubt > 0 && tally.steps > 0 && tally.effects > 0, "{tally:#?}");
}
