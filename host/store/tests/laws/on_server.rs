//! The store on a PostgreSQL server: what it refuses, and what becomes of commits when the server or the connection fails.

use crate::machine::is_left_out;
use crate::server;
use crate::store::{PostgresSettings, PostgresStore};

/// A store in a database of its own. `None` if the part is left out.
pub(crate) async fn store() -> Option<PostgresStore> {
    if is_left_out("postgres") {
        return None;
    }
    let settings = PostgresSettings { readers: 4, values: 2, ..PostgresSettings::new(server::database()) };
    Some(PostgresStore::open(&settings).await.unwrap())
}
