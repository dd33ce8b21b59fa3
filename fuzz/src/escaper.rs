//! The escaper: nothing dangerous comes out, nothing is lost, and JSON keeps its value.

#[path = "../../host/text/tests/shown/holds.rs"]
mod holds;

pub(crate) use holds::is_dangerous;

/// Any text, in every form in which people are shown it.
pub fn escaper(bytes: &[u8]) {
    holds::any_text(&String::from_utf8_lossy(bytes));
}
