//! Parts of `cargo xtask test` with laws that need something of the machine.

/// Whether `cargo xtask test --without PART` leaves a law out. Prints a line if so.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test reads its setting and prints a notice, which the test runner captures"
)]
pub(crate) fn is_left_out(part: &str) -> bool {
    let is_left_out = std::env::var("TOOLGATE_WITHOUT").is_ok_and(|parts| parts.split(',').any(|one| one == part));
    if is_left_out {
        println!("left out: TOOLGATE_WITHOUT names {part}");
    }
    is_left_out
}
