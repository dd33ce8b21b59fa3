//! The databases of the hosts under test, if `cargo xtask test` runs the tests on PostgreSQL.

#[path = "../../host/store/tests/laws/server.rs"]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod server;

/// The variable that chooses the store of each host under test.
const STORE: &str = "TOOLGATE_TEST_STORE";

/// Whether each host has a database. Without the variable, its turns are in its data folder.
///
/// # Panics
/// When the variable names no store.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "an option of `cargo xtask test`")]
pub fn is_chosen() -> bool {
    match std::env::var(STORE).as_deref() {
        Err(_) => false,
        Ok("postgres") => true,
        Ok(other) => panic!("{STORE} is `{other}`; set it to `postgres`, or remove it"),
    }
}

/// A new empty database. Returns its name and its connection string.
pub(crate) fn new() -> (String, String) {
    server::database()
}

/// A copy of a database that nobody uses. Returns its connection string.
pub(crate) fn copy(template: &str) -> String {
    server::copy(template).1
}
