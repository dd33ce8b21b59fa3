//! The fuzz targets: one function each, which accepts any bytes and panics if an invariant is broken.
//!
//! They are plain functions, so that `cargo test` replays the seeds and every input that once broke one. `cargo xtask
//! test` runs them with libFuzzer for a limited time, and `cargo fuzz run NAME` without a limit. See README.md.

mod addresses;
mod bodies;
mod escaper;
mod json;
mod loader;
mod options;
mod records;
mod rules;
mod section;

pub use addresses::addresses;
pub use bodies::bodies;
pub use escaper::escaper;
pub use json::json;
pub use loader::loader;
pub use options::options;
pub use records::records;
pub use rules::rules;
pub use section::section;

/// A target.
pub type Target = fn(&[u8]);

/// All targets by name. The program and the folders under `seeds` and `regressions` have the same name.
pub const TARGETS: [(&str, Target); 9] = [
    ("escaper", escaper),
    ("records", records),
    ("bodies", bodies),
    ("options", options),
    ("loader", loader),
    ("section", section),
    ("addresses", addresses),
    ("rules", rules),
    ("json", json),
];

/// Panics if a sentence of the host could deceive its reader.
#[track_caller]
pub(crate) fn assert_harmless(sentence: &str) {
    assert!(!sentence.contains(escaper::is_dangerous), "{sentence:?}");
}
