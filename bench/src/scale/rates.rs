//! Durable turns per second, and the cost of a turn for the hosts and the database.

use anyhow::Result;

use super::Sizes;
use super::floor::Floor;
use super::hosts::{Cluster, Usage};
use crate::http::rate;
use crate::measure::{Samples, pause, progress};
use crate::table::Table;

const HOSTS: [usize; 3] = [1, 2, 4];

const CALLERS: [usize; 3] = [1, 16, 256];

/// Measures the rates. All hosts run afterwards.
pub(super) async fn rates(cluster: &mut Cluster, floor: Floor, sizes: Sizes) -> Result<()> {
    let columns = [
        "hosts",
        "callers",
        "group commit of PostgreSQL",
        "batches on one connection",
        "toolgate",
        "ratio to the group commit (aim with one host: at least 0.7)",
        "ratio to the batches",
        "commits of a transaction",
    ];
    let mut table = Table::new("scale-rates", &columns, 0);
    let columns =
        ["hosts", "callers", "bytes of tables", "bytes of WAL", "hosts: µs", "PostgreSQL: µs", "load generator: µs"];
    let mut costs = Table::new("scale-costs", &columns, 0);
    let columns = [
        "hosts",
        "connections of each",
        "a host: ms/s",
        "PostgreSQL for each host: ms/s",
        "WAL for each host: bytes/s",
    ];
    let mut idle = Table::new("scale-idle", &columns, 0);
    for hosts in HOSTS {
        cluster.start(hosts).await?;
        for callers in CALLERS {
            progress(&format!("{callers} callers at {hosts} hosts"));
            let _ = rate(&cluster.hosts, callers, false, &format!("warm{hosts}"), sizes.window / 3).await?;
            let [mut grouped, mut batched, mut ours, mut of_grouped, mut of_batched] =
                [(); 5].map(|()| Samples::default());
            let mut cost = Costs::default();
            for round in 0..sizes.rounds {
                let floors = [floor.grouped(callers, sizes.window).await?, floor.batched(callers, sizes.window).await?];
                let before = cluster.usage().await?;
                let turns = rate(&cluster.hosts, callers, false, &format!("r{hosts}_{round}"), sizes.window).await?;
                let after = cluster.usage().await?;
                cost.add(before, after, cluster.transactions(before.position).await?);
                ours.add_value(turns);
                for (floor, (rates, ratios)) in
                    floors.into_iter().zip([(&mut grouped, &mut of_grouped), (&mut batched, &mut of_batched)])
                {
                    rates.add_value(floor);
                    ratios.add_value(turns / floor);
                }
            }
            let of = |name: usize| name.to_string();
            let rates = [grouped, batched, ours].map(|samples| spread(&samples, 0));
            let ratios = [of_grouped, of_batched].map(|samples| spread(&samples, 2));
            table.row(&[vec![of(hosts), of(callers)], rates.into(), ratios.into(), vec![cost.batch()]].concat());
            costs.row(&[vec![of(hosts), of(callers)], cost.cells()].concat());
        }
        idle.row(&idle_for(cluster, sizes).await?);
    }
    [table, costs, idle].iter().try_for_each(Table::finish)
}

/// Median, lowest and highest.
fn spread(samples: &Samples, digits: usize) -> String {
    let [median, low, high] = [0.5, 0.0, 1.0].map(|part| format!("{:.digits$}", samples.quantile(part)));
    format!("{median} ({low} to {high})")
}

/// The sums over all windows.
#[derive(Default)]
struct Costs {
    turns: f64,
    commits: f64,
    transactions: f64,
    tables: f64,
    log: f64,
    hosts: f64,
    database: f64,
    load: f64,
}

impl Costs {
    fn add(&mut self, before: Usage, after: Usage, transactions: i64) {
        let commits = (after.position - before.position) as f64;
        // A turn of one call has two commits.
        self.turns += commits / 2.0;
        self.commits += commits;
        self.transactions += transactions as f64;
        self.tables += after.tables - before.tables;
        self.log += after.log - before.log;
        self.hosts += after.hosts - before.hosts;
        self.database += after.database - before.database;
        self.load += after.load - before.load;
    }

    fn batch(&self) -> String {
        format!("{:.1}", self.commits / self.transactions)
    }

    /// The cost of a turn: bytes, and microseconds of the processors.
    fn cells(&self) -> Vec<String> {
        let times = [self.hosts, self.database, self.load].map(|seconds| seconds * 1e6);
        let sums = [self.tables, self.log].into_iter().chain(times);
        sums.map(|sum| format!("{:.0}", sum / self.turns)).collect()
    }
}

/// The use of hosts that have nothing to do.
async fn idle_for(cluster: &Cluster, sizes: Sizes) -> Result<[String; 5]> {
    let hosts = cluster.hosts.len() as f64;
    // The hosts learn of each other, and end what they do after a turn.
    pause(2_000).await;
    let before = cluster.usage().await?;
    let window = sizes.window * 2;
    pause(u64::try_from(window.as_millis())?).await;
    let after = cluster.usage().await?;
    let each = |sum: f64| sum / hosts / window.as_secs_f64();
    Ok([
        format!("{hosts:.0}"),
        format!("{:.1}", after.connections as f64 / hosts),
        format!("{:.1}", each(after.hosts - before.hosts) * 1e3),
        format!("{:.1}", each(after.database - before.database) * 1e3),
        format!("{:.0}", each(after.log - before.log)),
    ])
}
