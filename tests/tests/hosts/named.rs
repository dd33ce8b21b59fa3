//! A host of a name on a database.

use toolgate_tests::host::{Host, Setup};

/// A host of a name on a database, beside others.
pub(crate) fn host(url: &str, name: &str, plugins: &[&str], beside: Option<&Host>) -> Host {
    let mut host = setup(url, name, 10, plugins, beside).prepare();
    host.start();
    host
}

/// The setup of such a host, with the seconds of its lease.
pub(crate) fn setup(url: &str, name: &str, lease: u32, plugins: &[&str], beside: Option<&Host>) -> Setup {
    let table = format!("[store]\nurl = \"{url}\"\nhost = \"{name}\"\nkey_file = \"shared\"\nlease_seconds = {lease}");
    let setup = Setup::with(plugins).tables(&table).file("shared", "a secret of at least thirty-two bytes");
    match beside {
        Some(other) => setup.beside(other),
        None => setup,
    }
}
