//! Components that all hosts share.

use std::collections::HashSet;
use std::time::Duration;

use domain::Digest;

use crate::machine::is_left_out;
use crate::on_server::settings;
use crate::server;
use crate::store::{HostIdentity, PostgresSettings, PostgresStore};

const HOUR: Duration = Duration::from_secs(60 * 60);

async fn host(url: &str, name: &str) -> PostgresStore {
    let settings = settings(url.to_owned());
    let host = HostIdentity { name: name.to_owned(), ..settings.host };
    PostgresStore::open(&PostgresSettings { host, ..settings }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn component_of_one_host_is_read_at_another() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let (a, b) = (host(&url, "a").await, host(&url, "b").await);
    let (of_a, of_b) = (a.components(), b.components());
    let (bytes, digest) = (vec![7; 3 << 20], Digest::of("one"));
    of_a.keep(digest, &bytes, b"record").await.unwrap();
    assert!(of_b.bytes(digest).await.unwrap().as_ref() == Some(&bytes));
    assert_eq!(of_b.record(digest).await.unwrap().as_deref(), Some(b"record".as_slice()));
    assert_eq!(of_b.bytes(Digest::of("two")).await.unwrap(), None);
    assert_eq!(of_b.record(Digest::of("two")).await.unwrap(), None);
    // The bytes of a digest never change. The record may be that of another version of the host.
    of_b.keep(digest, b"", b"newer").await.unwrap();
    assert!(of_a.bytes(digest).await.unwrap() == Some(bytes));
    assert_eq!(of_a.record(digest).await.unwrap().as_deref(), Some(b"newer".as_slice()));
    let refused = of_a.keep(Digest::of("two"), &vec![0; (64 << 20) + 1], b"").await.unwrap_err().to_string();
    assert!(refused.contains("64 MiB"), "{refused}");
    assert_eq!(server::run(&name, "SELECT count(*) FROM toolgate.components"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_old_components_without_a_pin_are_removed() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let (a, b) = (host(&url, "a").await, host(&url, "b").await);
    let (of_a, of_b) = (a.components(), b.components());
    let [old, pinned, live, new, reloaded] = ["old", "pinned", "live", "new", "reloaded"].map(Digest::of);
    for component in [old, pinned, live, reloaded] {
        of_a.keep(component, b"bytes", b"record").await.unwrap();
    }
    let age = "UPDATE toolgate.components SET last_live = last_live - interval '1 hour'";
    server::run(&name, age);
    of_a.keep(new, b"bytes", b"record").await.unwrap();
    of_a.keep(reloaded, b"bytes", b"record").await.unwrap();
    let unknown = Digest::of("unknown");
    assert_eq!(of_a.live(&HashSet::from([live, unknown])).await.unwrap(), HashSet::from([live]));
    assert_eq!(of_b.collect(&HashSet::from([pinned]), 2 * HOUR).await.unwrap(), 0);
    assert_eq!(of_b.collect(&HashSet::from([pinned]), HOUR).await.unwrap(), 1);
    for (component, is_kept) in [(old, false), (pinned, true), (live, true), (new, true), (reloaded, true)] {
        assert_eq!(of_b.bytes(component).await.unwrap().is_some(), is_kept, "{component}");
    }
    assert_eq!(of_b.collect(&HashSet::new(), HOUR).await.unwrap(), 1, "nothing is pinned any more");
    server::run(&name, age);
    assert_eq!(of_b.collect(&HashSet::new(), HOUR).await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn component_that_is_kept_meanwhile_is_not_removed() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let (a, b) = (host(&url, "a").await, host(&url, "b").await);
    let (of_a, of_b) = (a.components(), b.components());
    let component = Digest::of("component");
    for round in 0..50 {
        of_a.keep(component, b"bytes", b"record").await.unwrap();
        server::run(&name, "UPDATE toolgate.components SET last_live = last_live - interval '2 hours'");
        let (none, live) = (HashSet::new(), HashSet::from([component]));
        let (kept, collected, live) =
            tokio::join!(of_a.keep(component, b"bytes", b"record"), of_b.collect(&none, HOUR), of_b.live(&live));
        kept.unwrap();
        collected.unwrap();
        live.unwrap();
        assert!(of_b.bytes(component).await.unwrap().is_some(), "{round}");
    }
}
