//! Several hosts on one database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dispatch::ports::{
    AppendError, Audit as _, Footprint, Health as _, Indexes as _, LivePlugins, Log as _, News, PeerCommit, Peers as _,
    Position, RowChange, Share,
};
use domain::event::TurnEnd;
use domain::{Digest, OwnerId, PluginName, SignalName, ToolName};

use crate::given::{self, ENDED, OPEN, commit, conversation, principal, row, turn, with};
use crate::machine::is_left_out;
use crate::on_server::{behind_proxy, refusal, settings, until_failure_is, verified};
use crate::proxy::Cut;
use crate::server;
use crate::store::{HostIdentity, PostgresError, PostgresSettings, PostgresStore};
use crate::takeover::assert_final;

/// Nobody waits so long for a lease.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

/// Of a host that renews its lease often.
pub(crate) const SHORT: Duration = Duration::from_millis(600);

/// When a host that hears nothing fails a test.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn of(url: &str, name: &str, lease: Duration) -> PostgresSettings {
    let settings = settings(url.to_owned());
    let host = HostIdentity { name: name.to_owned(), version: "1.2.3".to_owned(), ..settings.host };
    PostgresSettings { host, lease, ..settings }
}

/// Two hosts, of which only the second one renews its lease, and so removes others.
async fn two() -> Option<(String, PostgresStore, PostgresStore, [OwnerId; 2])> {
    if is_left_out("postgres") {
        return None;
    }
    let (name, url) = server::database();
    let (a, b) = (of(&url, "a", LONG), of(&url, "b", SHORT));
    let owners = [a.host.owner, b.host.owner];
    Some((name, PostgresStore::open(&a).await.unwrap(), PostgresStore::open(&b).await.unwrap(), owners))
}

pub(crate) async fn news(store: &PostgresStore) -> News {
    tokio::time::timeout(PATIENCE, store.news()).await.unwrap()
}

/// The commits that a host hears of until it has this many.
async fn commits(store: &PostgresStore, number: usize) -> Vec<PeerCommit> {
    let mut heard = Vec::new();
    while heard.len() < number {
        let News::Commits(commits) = news(store).await else { continue };
        heard.extend(commits);
    }
    heard
}

/// Waits until the database says so.
pub(crate) async fn until<T>(reached: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = reached().await {
                return found;
            }
            // The condition may block the thread.
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap()
}

fn of_turn(number: u64, before: u32) -> PeerCommit {
    PeerCommit::Turn { turn: turn(number), number: before, conversation: conversation("c"), ended: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_of_two_hosts_make_one_chain() {
    let Some((_, a, b, _)) = two().await else { return };
    for number in 0..10 {
        let (one, other) = if number % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let position = one.append(&commit(1, number, number.into())).await.unwrap();
        assert_eq!(position, Position(u64::from(number) + 1));
        let log = other.load(turn(1)).await.unwrap().found().unwrap();
        assert_eq!(log.version, number + 1, "the other host sees it");
    }
    let hosts = [Arc::new(a), Arc::new(b)];
    let writers: Vec<_> = (2..10_u64)
        .map(|number| {
            let store = hosts[usize::try_from(number).unwrap() % 2].clone();
            tokio::spawn(async move {
                for expected in 0..20 {
                    store.append(&commit(number, expected, u64::from(expected))).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    for host in &hosts {
        assert_eq!(verified(host).await, 10 + 8 * 20);
        assert!(host.health().failure.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_conflicting_hosts_wins() {
    let Some((_, a, b, _)) = two().await else { return };
    for number in 0..50 {
        let (of_a, of_b) = (commit(1, number, 1), commit(1, number, 2));
        let both = tokio::join!(a.append(&of_a), b.append(&of_b));
        let conflicts = |result: &Result<_, _>| matches!(result, Err(AppendError::Conflict));
        assert!(both.0.is_ok() && conflicts(&both.1) || both.1.is_ok() && conflicts(&both.0), "{number}: {both:?}");
    }
    assert_eq!(verified(&a).await, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_hears_of_the_commits_of_the_other() {
    let Some((_, a, b, _)) = two().await else { return };
    b.append(&commit(7, 0, 1)).await.unwrap();
    a.append(&commit(1, 0, 1)).await.unwrap();
    a.append(&given::record(given::plugin(1))).await.unwrap();
    b.append(&commit(7, 1, 2)).await.unwrap();
    a.append(&given::started(given::start(1))).await.unwrap();
    let end = RowChange::Ended(crate::removing::ended(1, 9), TurnEnd::Settled);
    a.append(&with(commit(1, 1, 2), [end])).await.unwrap();
    // It has no facts.
    a.sync().await.unwrap();
    let ended =
        PeerCommit::Turn { turn: turn(1), number: 1, conversation: conversation("c"), ended: Some(principal("ann")) };
    assert_eq!(commits(&b, 4).await, [of_turn(1, 0), PeerCommit::Plugin, PeerCommit::Other, ended]);
    assert_eq!(commits(&a, 2).await, [of_turn(7, 0), of_turn(7, 1)]);
    // A reader that gives up takes nothing from a later one.
    assert!(futures::FutureExt::now_or_never(a.news()).is_none(), "nothing has happened");
    b.append(&commit(7, 2, 3)).await.unwrap();
    assert_eq!(commits(&a, 1).await, [of_turn(7, 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_missed_many_commits_hears_of_it() {
    let Some((name, a, b, _)) = two().await else { return };
    // The positions are those of commits that are not there, for speed.
    server::run(&name, "UPDATE toolgate.head SET position = position + 10001");
    while news(&b).await != News::Missed {}
    a.append(&commit(1, 0, 1)).await.unwrap();
    assert_eq!(commits(&b, 1).await, [of_turn(1, 0)]);
    // A server without the last commits took over.
    server::run(&name, "UPDATE toolgate.head SET position = position - 1");
    while news(&b).await != News::Missed {}
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_was_removed_takes_no_commits() {
    let Some((name, a, b, owners)) = two().await else { return };
    a.append(&commit(1, 0, 1)).await.unwrap();
    assert_eq!(b.ended_hosts(owners.to_vec()).await.unwrap(), []);
    server::run(
        &name,
        "UPDATE toolgate.hosts SET lease_until = clock_timestamp() - interval '1 hour' WHERE name = 'a'",
    );
    while news(&b).await != News::Ended {}
    let never_there = OwnerId::from_bits(7);
    let ended = b.ended_hosts([owners.as_slice(), &[never_there]].concat()).await.unwrap();
    assert_eq!(ended, [owners[0], never_there]);
    assert!(a.append(&commit(1, 1, 2)).await.is_err());
    assert_final(&a, "another host found that the lease of this host had ended").await;
    assert!(a.attach(&conversation("c"), vec![ToolName::new("t").unwrap()]).await.is_err());
    b.append(&commit(1, 1, 3)).await.unwrap();
    assert_eq!(verified(&b).await, 2);
    drop(a);
    assert_eq!(b.hosts().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_commits_keeps_its_lease() {
    let Some((name, a, b, owners)) = two().await else { return };
    server::run(
        &name,
        "UPDATE toolgate.hosts SET lease_until = clock_timestamp() + interval '1 minute' WHERE name = 'a'",
    );
    let left = "SELECT lease_until > clock_timestamp() + interval '30 minutes' FROM toolgate.hosts WHERE name = 'a'";
    assert_eq!(server::run(&name, left), "f");
    a.append(&commit(1, 0, 1)).await.unwrap();
    assert_eq!(server::run(&name, left), "t");
    assert_eq!(b.ended_hosts(owners.to_vec()).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_host_that_was_removed_finds_out() {
    let Some((name, _a, b, _)) = two().await else { return };
    server::run(&name, "DELETE FROM toolgate.hosts WHERE name = 'b'");
    let mut failure = b.final_failure();
    let found = tokio::time::timeout(PATIENCE, failure.wait_for(Option::is_some)).await;
    assert!(found.unwrap().unwrap().as_ref().unwrap().reason.contains("start the host again"));
    assert_final(&b, "another host found that the lease of this host had ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_ends_in_order_is_dead_at_once() {
    let Some((_, a, b, owners)) = two().await else { return };
    a.append(&commit(1, 0, 1)).await.unwrap();
    a.attach(&conversation("c"), vec![ToolName::new("t").unwrap()]).await.unwrap();
    drop(a);
    assert_eq!(b.ended_hosts(owners.to_vec()).await.unwrap(), [owners[0]]);
    assert_eq!(b.attached(&conversation("c")).await.unwrap(), []);
    while news(&b).await != News::Ended {}
    assert_eq!(b.share(), Share::ALL);
}

#[tokio::test(flavor = "multi_thread")]
async fn host_with_another_key_is_refused() {
    if is_left_out("postgres") {
        return;
    }
    let (_, url) = server::database();
    let with_key = |name, key: &str| {
        let settings = of(&url, name, LONG);
        PostgresSettings { host: HostIdentity { key: Digest::of(key), ..settings.host }, ..settings }
    };
    let a = PostgresStore::open(&with_key("a", "one")).await.unwrap();
    let refused = refusal(&with_key("b", "two")).await;
    assert!(matches!(&refused, PostgresError::OtherKey { host } if host == "a"), "{refused}");
    assert!(refused.to_string().contains("`key_file`"), "{refused}");
    PostgresStore::open(&with_key("c", "one")).await.unwrap();
    assert_eq!(a.hosts().await.unwrap().len(), 1);
    drop(a);
    PostgresStore::open(&with_key("b", "two")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answer_with_two_hosts_is_resolved() {
    if is_left_out("postgres") {
        return;
    }
    for cut in [Cut::BehindCommit, Cut::BeforeCommit, Cut::BeforeAll] {
        let (name, proxy, a) = behind_proxy(Duration::from_secs(10)).await;
        let b = PostgresStore::open(&of(&server::url(server::folder(), &name), "b", LONG)).await.unwrap();
        a.append(&commit(1, 0, 1)).await.unwrap();
        proxy.cut(cut, 1);
        let of_a = commit(1, 1, 2);
        let of_b = async {
            for number in 0..20 {
                b.append(&commit(2, number, number.into())).await.unwrap();
            }
        };
        let (position, ()) = tokio::join!(a.append(&of_a), of_b);
        assert!((2..=22).contains(&position.unwrap().0), "{cut:?}");
        assert_eq!(proxy.cuts(), 1, "{cut:?}");
        a.append(&commit(1, 2, 3)).await.unwrap();
        b.append(&commit(2, 20, 20)).await.unwrap();
        assert_eq!((verified(&a).await, verified(&b).await), (24, 24), "{cut:?}");
        assert!(a.health().failure.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answer_to_an_attempt_is_no_foreign_commit() {
    if is_left_out("postgres") {
        return;
    }
    let (_, proxy, store) = behind_proxy(Duration::from_secs(1)).await;
    store.append(&commit(1, 0, 1)).await.unwrap();
    proxy.close(true);
    assert!(store.append(&commit(1, 1, 2)).await.is_err());
    let before = proxy.cuts();
    // The store tries a transaction without commits. Its answer is lost, and no server answers after that.
    proxy.cut_and_close(Cut::BehindCommit);
    proxy.close(false);
    until(async || {
        drop(store.head().await);
        (proxy.cuts() > before).then_some(())
    })
    .await;
    proxy.close(false);
    until_failure_is(&store, None).await;
    store.append(&commit(1, 1, 2)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_know_each_other() {
    let Some((name, a, b, owners)) = two().await else { return };
    b.report(3);
    assert_eq!(b.share(), Share::new(1, 2));
    b.drain();
    let live = |component| LivePlugins([(PluginName::new("mcp:p").unwrap(), Digest::of(component))].into());
    for live in [live("one"), live("another"), LivePlugins::default()] {
        b.report_plugins(live.clone());
        until(async || (a.hosts().await.unwrap()[1].plugins.as_ref() == Some(&live)).then_some(())).await;
    }
    let hosts = until(async || {
        let hosts = a.hosts().await.unwrap();
        hosts.iter().any(|host| host.is_draining).then_some(hosts)
    })
    .await;
    assert_eq!(hosts[0].plugins, None, "it has not said them");
    assert_eq!(
        hosts.iter().map(|host| (host.name.as_str(), host.owner)).collect::<Vec<_>>(),
        [("a", owners[0]), ("b", owners[1])]
    );
    assert_eq!((hosts[1].running_calls, hosts[0].is_draining, hosts[0].version.as_str()), (3, false, "1.2.3"));
    assert!(hosts.iter().all(|host| host.renewed >= host.since));
    assert_eq!(b.share(), Share::NONE, "a host that drains has no share");
    assert!(a.is_shared());
    let of_server = server::run("postgres", "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    assert!(b.time().borrow().now().abs_diff(of_server.parse().unwrap()) < 60_000);
    drop(b);
    assert_eq!(a.hosts().await.unwrap().len(), 1, "it has left in order");
    assert_eq!(server::run(&name, "SELECT count(*) FROM toolgate.live_plugins"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn hint_of_a_commit_arrives_at_another_host() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let seldom = |name| PostgresSettings { poll: LONG, ..of(&url, name, SHORT) };
    let a = PostgresStore::open(&seldom("a")).await.unwrap();
    let b = PostgresStore::open(&seldom("b")).await.unwrap();
    for number in 0..3 {
        // Without other hosts, a host sends no hints.
        until(async || (a.share() == Share::new(0, 2)).then_some(())).await;
        a.append(&commit(1, number, number.into())).await.unwrap();
        assert_eq!(commits(&b, 1).await, [of_turn(1, number)]);
        // The connection of the hints is made again.
        let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() \
            AND (query LIKE 'SELECT pg_notify%' OR query LIKE 'LISTEN%') AND pid <> pg_backend_pid()";
        server::run(&name, ended);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attached_tools_are_those_of_other_hosts() {
    let Some((_, a, b, _)) = two().await else { return };
    let (c, tool) = (conversation("c"), |name: &str| ToolName::new(name).unwrap());
    a.attach(&c, vec![tool("one"), tool("two")]).await.unwrap();
    b.attach(&c, vec![tool("three")]).await.unwrap();
    assert_eq!(b.attached(&c).await.unwrap(), [tool("one"), tool("two")]);
    assert_eq!(a.attached(&c).await.unwrap(), [tool("three")]);
    a.attach(&c, vec![tool("four")]).await.unwrap();
    assert_eq!(b.attached(&c).await.unwrap(), [tool("four")]);
    a.attach(&c, Vec::new()).await.unwrap();
    assert_eq!(b.attached(&c).await.unwrap(), []);
    assert_eq!(b.attached(&conversation("other")).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_turns_are_counted_over_all_hosts() {
    let Some((name, a, b, _)) = two().await else { return };
    let usage = |turns, bytes, suspensions| Footprint { turns, bytes, suspensions };
    let change = |of: &str, less, more| RowChange::Open { principal: principal(of), less, more };
    let none = Footprint::default();
    a.append(&with(commit(1, 0, 1), [change("ann", none, usage(1, 100, 0))])).await.unwrap();
    b.append(&with(commit(2, 0, 1), [change("ann", none, usage(1, 50, 1))])).await.unwrap();
    // Two changes of one principal may share a transaction.
    let (of_bob, more_of_bob) = (
        with(commit(3, 0, 1), [change("bob", none, usage(1, 7, 0))]),
        with(commit(4, 0, 1), [change("bob", none, usage(1, 8, 0))]),
    );
    let both = tokio::join!(b.append(&of_bob), b.append(&more_of_bob));
    assert!(both.0.is_ok() && both.1.is_ok());
    for store in [&a, &b] {
        assert_eq!(store.open_turns(Some(&principal("ann"))).await.unwrap(), Some(usage(2, 150, 1)));
        assert_eq!(store.open_turns(None).await.unwrap(), Some(usage(4, 165, 1)));
        let found = store.find_submission(&conversation("c"), Vec::new(), Some(&principal("ann"))).await.unwrap();
        assert_eq!(found.open_turns, Some(usage(2, 150, 1)));
    }
    a.append(&with(commit(2, 1, 2), [change("ann", usage(1, 50, 1), none)])).await.unwrap();
    let refused = with(commit(2, 1, 2), [change("ann", usage(1, 50, 1), none)]);
    assert!(matches!(b.append(&refused).await, Err(AppendError::Conflict)));
    b.append(&with(commit(1, 1, 2), [change("ann", usage(1, 100, 0), usage(1, 120, 0))])).await.unwrap();
    assert_eq!(b.open_turns(Some(&principal("ann"))).await.unwrap(), Some(usage(1, 120, 0)));
    b.append(&with(commit(1, 2, 3), [change("ann", usage(1, 120, 0), none)])).await.unwrap();
    assert_eq!(a.open_turns(Some(&principal("ann"))).await.unwrap(), Some(none));
    assert_eq!(server::run(&name, "SELECT string_agg(principal, ' ') FROM toolgate.open_turns"), "bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_never_give_one_signal_to_two_waits() {
    let Some((_, a, b, _)) = two().await else { return };
    let waits = |number, state, signal: &str| {
        let signal = Some(SignalName::new(signal).unwrap());
        RowChange::Suspension(dispatch::ports::SuspensionRow { signal, ..row(number, state) })
    };
    let (first, second) =
        (with(commit(1, 0, 1), [waits(1, OPEN, "paid")]), with(commit(2, 0, 1), [waits(2, OPEN, "paid")]));
    let both = tokio::join!(a.append(&first), b.append(&second));
    let winners = [both.0.is_ok(), both.1.is_ok()];
    assert!(winners == [true, false] || winners == [false, true], "{both:?}");
    assert!([both.0, both.1].into_iter().any(|refused| matches!(refused, Err(AppendError::Conflict))));
    a.append(&with(commit(3, 0, 1), [waits(3, OPEN, "sent")])).await.unwrap();
    let number = if winners[0] { 1 } else { 2 };
    // It is free again, also for another wait in the same commit.
    b.append(&with(commit(4, 0, 1), [waits(number, ENDED, "paid"), waits(5, OPEN, "paid")])).await.unwrap();
    let late = with(commit(5, 0, 1), [waits(6, OPEN, "paid")]);
    assert!(matches!(a.append(&late).await, Err(AppendError::Conflict)));
}

#[tokio::test(flavor = "multi_thread")]
async fn host_of_a_name_replaces_the_one_before() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let (a, b) = (of(&url, "a", LONG), of(&url, "b", SHORT));
    let (first, b) = (PostgresStore::open(&a).await.unwrap(), PostgresStore::open(&b).await.unwrap());
    // It ends without a word.
    std::mem::forget(first);
    let opening = tokio::spawn({
        let again = of(&url, "a", LONG);
        async move { (again.host.owner, PostgresStore::open(&again).await.unwrap()) }
    });
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted AND \
        database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid IN \
        (SELECT unnest(pg_blocking_pids(pid)) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)";
    while server::run(&name, end) != "1" {
        assert!(!opening.is_finished());
    }
    let (owner, second) = opening.await.unwrap();
    while news(&b).await != News::Ended {}
    let ended = b.ended_hosts(vec![a.host.owner, owner]).await.unwrap();
    assert_eq!(ended, [a.host.owner]);
    let runs = server::run(&name, "SELECT count(*), min(run) FROM toolgate.hosts WHERE name = 'a'");
    assert_eq!(runs, "1|3");
    second.append(&commit(1, 0, 1)).await.unwrap();
    let names: BTreeSet<_> = b.hosts().await.unwrap().into_iter().map(|host| host.name).collect();
    assert_eq!(names, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
}
