//! Hosts on one database, and their usage of the machine.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use tokio_postgres::{Client, NoTls};

use super::server;
use crate::http::{Serving, add_plugin, first_call};
use crate::setting::QUOTA;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Hosts on one database. The first one is never killed.
pub(super) struct Cluster {
    folder: tempfile::TempDir,
    url: String,
    /// A connection of the benchmark.
    pub(super) database: Client,
    pub(super) hosts: Vec<Serving>,
}

/// Connects to a database, with the tables of the hosts in the search path.
pub(super) async fn connect(url: &str) -> Result<Client> {
    let mut config: tokio_postgres::Config = url.parse()?;
    let (client, connection) = config.options("-c search_path=toolgate").connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Cluster {
    /// A new database on a server, without hosts.
    pub(super) async fn new(server: &Path, name: &str) -> Result<Self> {
        server::run_at(server, "postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        let url = server::url(server, name);
        let database = connect(&url).await?;
        Ok(Self { folder: tempfile::tempdir()?, url, database, hosts: Vec::new() })
    }

    /// The connection string of the database.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Starts hosts until there are this many, each with the defaults of an operator.
    pub(super) async fn start(&mut self, count: usize) -> Result<()> {
        for name in NAMES.iter().take(count).skip(self.hosts.len()) {
            let folder = self.folder.path().join(name);
            add_plugin(&folder)?;
            let secret = folder.join("secret");
            std::fs::write(&secret, "a secret of at least thirty-two bytes")?;
            std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600))?;
            let store = format!("[store]\nurl = \"{}\"\nhost = \"{name}\"\nkey_file = \"secret\"\n", self.url);
            std::fs::write(folder.join("toolgate.toml"), format!("{QUOTA}\n{store}"))?;
            let host = Serving::start_beside(&folder, self.hosts.first())?;
            first_call(&mut host.connect().await?).await?;
            self.hosts.push(host);
        }
        Ok(())
    }

    /// The usage until now.
    pub(super) async fn usage(&self) -> Result<Usage> {
        let row = self.database.query_one(USAGE, &[]).await?;
        let processes = self.database.query("SELECT pid FROM pg_stat_activity", &[]).await?;
        let seconds = |processes: &mut dyn Iterator<Item = u32>| processes.filter_map(processor).sum();
        Ok(Usage {
            position: row.try_get("position")?,
            log: row.try_get::<_, i64>("log")? as f64,
            tables: row.try_get::<_, i64>("tables")? as f64,
            connections: row.try_get("connections")?,
            hosts: seconds(&mut self.hosts.iter().map(Serving::process)),
            database: seconds(&mut processes.iter().filter_map(|row| u32::try_from(row.get::<_, i32>("pid")).ok())),
            load: processor(std::process::id()).context("this process has a time")?,
        })
    }

    /// The transactions with commits after a position.
    pub(super) async fn transactions(&self, after: i64) -> Result<i64> {
        let counted = "SELECT count(DISTINCT xmin::text) FROM commits WHERE position > $1";
        Ok(self.database.query_one(counted, &[&after]).await?.try_get(0)?)
    }
}

const USAGE: &str = "SELECT head.position, \
    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS log, \
    (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class \
        WHERE relnamespace = 'toolgate'::regnamespace AND relkind = 'r') AS tables, \
    (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'toolgate' AND datname = current_database()) AS connections \
    FROM head";

/// The usage until some time: bytes, and seconds of the processors.
#[derive(Clone, Copy)]
pub(super) struct Usage {
    pub(super) position: i64,
    /// Of the write-ahead log.
    pub(super) log: f64,
    /// Of the tables and their indexes.
    pub(super) tables: f64,
    /// Of the hosts, at that time.
    pub(super) connections: i64,
    pub(super) hosts: f64,
    pub(super) database: f64,
    /// Of the load generator.
    pub(super) load: f64,
}

/// The seconds that a process has used a processor. `None`: it has ended.
fn processor(process: u32) -> Option<f64> {
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may have spaces.
    let mut fields = text.rsplit(')').next()?.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}
