//! Random programs of a durable call with kills: the short form. `cargo xtask kills --programs 4000` is the long one.

#[path = "journal/buckets.rs"]
mod buckets;
#[path = "programs/model.rs"]
mod model;

use model::{Plan, Tally};
use toolgate_tests::host::say;

#[test]
fn kills_change_nothing_about_random_programs() {
    let tally = model::run(Plan { programs: 20, seed: 0x7001_6a7e });
    say(&format!("{tally:#?}"));
    let Tally { refused, sent_again, in_doubt, nested, steps, entries, effects, resumed, .. } = tally;
    let Tally { edited, expired, cancelled, .. } = tally;
    assert!(resumed > 0, "{tally:#?}");
    let counts = [refused, sent_again, in_doubt, nested, steps, entries, effects, edited, expired, cancelled];
    assert!(counts.iter().all(|count| *count > 0), "{tally:#?}");
}
