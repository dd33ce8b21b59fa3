//! What is fuzzed: one function for each target, which takes any bytes and panics where an invariant is broken.
//!
//! They are plain functions, so that `cargo test` replays the seeds and every input that once broke one. libFuzzer drives
//! them by `cargo xtask test` for a while and by `cargo fuzz run NAME` for as long as one likes; README.md says how.

mod addresses;
mod doors;
mod escaper;
mod loader;
mod options;
mod records;
mod rules;
mod section;

pub use addresses::addresses;
pub use doors::doors;
pub use escaper::escaper;
pub use loader::loader;
pub use options::options;
pub use records::records;
pub use rules::rules;
pub use section::section;

/// A target.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its program, and of its folders under `seeds` and `regressions`.
pub const TARGETS: [(&str, Target); 8] = [
    ("escaper", escaper),
    ("records", records),
    ("doors", doors),
    ("options", options),
    ("loader", loader),
    ("section", section),
    ("addresses", addresses),
    ("rules", rules),
];

/// Panics if a sentence of ours could deceive its reader.
#[track_caller]
pub(crate) fn assert_harmless(sentence: &str) {
    assert!(!sentence.contains(escaper::is_dangerous), "{sentence:?}");
}
