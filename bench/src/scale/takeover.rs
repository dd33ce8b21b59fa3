//! The time from the kill of a host to the commit with which another host takes a call over.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Sizes;
use super::hosts::Cluster;
use crate::measure::{Samples, now, pause, progress};
use crate::table::Table;

/// The default lease of a host, in seconds.
const LEASE: f64 = 15.0;

/// How long the calls last, in milliseconds.
const CALL: u64 = 30_000;

const MAX_WAIT: Duration = Duration::from_secs(60);

const LEASES: &str = "SELECT position, (SELECT array_agg(extract(epoch FROM lease_until - clock_timestamp())::float8 \
    ORDER BY name) FROM hosts WHERE name <> 'a') AS left FROM head";

const TAKEN: &str = "SELECT conversation FROM commits WHERE position > $1 AND conversation LIKE 'taken%'";

pub(super) async fn takeover(cluster: &mut Cluster, sizes: Sizes) -> Result<()> {
    let (mut all, mut late) = (Samples::default(), Samples::default());
    for round in 0..sizes.kills {
        cluster.start(4).await?;
        progress(&format!("kill {round} of three hosts"));
        // In each round, the leases begin at another time between two looks of the first host at them, and end at another time after
        // the kill.
        let phase = round as u64 * 1_700;
        pause(phase).await;
        let (mut running, killed) = (HashSet::new(), cluster.hosts.len() - 1);
        for (host, serving) in cluster.hosts.iter().enumerate().skip(1) {
            let mut connection = serving.connect().await?;
            for call in 0..sizes.calls {
                let conversation = format!("taken{round}_{host}_{call}");
                let body = format!(r#"{{"calls":[{{"id":"sleep","tool":"sleep","arguments":{{"ms":{CALL}}}}}]}}"#);
                let (status, answer) =
                    connection.post(&format!("/v1/conversations/{conversation}/turns"), &body).await?;
                ensure!(status == 201, "{status}: {answer}");
                running.insert(conversation);
            }
        }
        pause(phase).await;
        let start = now();
        cluster.hosts.truncate(1);
        let row = cluster.database.query_one(LEASES, &[]).await?;
        let (position, left): (i64, Vec<f64>) = (row.try_get("position")?, row.try_get("left")?);
        let asked = start.elapsed().as_secs_f64();
        ensure!(left.len() == killed, "a killed host has its row until its lease ends");
        while !running.is_empty() {
            for row in cluster.database.query(TAKEN, &[&position]).await? {
                let conversation: String = row.try_get(0)?;
                if running.remove(&conversation) {
                    let time = start.elapsed().as_secs_f64();
                    let host = conversation.split('_').nth(1).and_then(|host| host.parse::<usize>().ok()).unwrap_or(1);
                    all.add_value(time);
                    late.add_value(time - asked - left[host - 1]);
                }
            }
            ensure!(start.elapsed() < MAX_WAIT, "no host takes {running:?} over");
            pause(5).await;
        }
    }
    let columns = ["a call of a killed host", "median", "lowest", "highest"];
    let mut table = Table::new("scale-takeover", &columns, 1);
    let mut row = |name: &str, samples: &Samples, less: f64| {
        let cells = [0.5, 0.0, 1.0].map(|part| format!("{:.1} s", samples.quantile(part) - less));
        table.row(&[vec![name.to_owned()], cells.to_vec()].concat());
    };
    row("from the kill to the commit of another host that takes it over", &all, 0.0);
    row("less the lease of 15 s", &all, LEASE);
    row("from the end of the lease of its host", &late, 0.0);
    table.finish()
}
