//! A host of a name on a database.

use toolgate_tests::host::{Host, Setup};

/// A host of a name on a database, beside others.
pub(crate) fn host(url: &str, name: &str, plugins: &[&str], beside: Option<&Host>) -> Host {
    let table = format!("[store]\nurl = \"{url}\"\nhost = \"{name}\"\nkey_file = \"shared\"\nlease_seconds = 10");
    let setup = Setup::with(plugins).tables(&table).file("shared", "a secret of at least thirty-two bytes");
    let mut host = match beside {
        Some(other) => setup.beside(other),
        None => setup,
    }
    .prepare();
    host.start();
    host
}
