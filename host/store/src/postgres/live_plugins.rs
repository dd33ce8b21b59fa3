//! The live plugins of each host, in a table beside that of the hosts.

use std::collections::BTreeMap;

use dispatch::ports::{LivePlugins, StoreFault};
use domain::{Digest, PluginName};
use tokio_postgres::Row;

use super::hosts::Me;
use super::reads::Reader;
use super::rows::column;

const WRITE: &str = "INSERT INTO live_plugins (host, names, digests) SELECT name, $3, $4 FROM hosts \
    WHERE name = $1 AND owner = $2 ON CONFLICT (host) DO UPDATE SET names = excluded.names, digests = excluded.digests";

/// Those of a row of `hosts LEFT JOIN live_plugins`. `None`: the host has not said them, or a name or digest is not valid.
pub(super) fn read(row: &Row) -> Result<Option<LivePlugins>, StoreFault> {
    let (names, digests): (Option<Vec<&str>>, Option<Vec<&[u8]>>) = (column(row, "names")?, column(row, "digests")?);
    let (Some(names), Some(digests)) = (names, digests) else { return Ok(None) };
    let plugin = |(name, digest): (&str, &[u8])| {
        Some((PluginName::new(name).ok()?, Digest::from_bytes(digest.try_into().ok()?)))
    };
    let plugins: Option<BTreeMap<_, _>> = names.into_iter().zip(digests).map(plugin).collect();
    Ok(plugins.map(LivePlugins))
}

/// Replaces those of this host, if its row is still there.
pub(super) async fn write(connection: &Reader, me: &Me, plugins: &LivePlugins) -> Result<(), StoreFault> {
    let (names, digests): (Vec<&str>, Vec<&[u8]>) =
        plugins.0.iter().map(|(name, digest)| (name.as_str(), digest.as_bytes().as_slice())).unzip();
    connection.query(WRITE, &[&me.name(), &me.owner(), &names, &digests]).await.map(drop)
}
