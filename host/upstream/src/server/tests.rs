//! One server with the clock of the tests.

use std::path::Path;
use std::sync::Barrier;

use domain::{PluginName, tool::Approval};
use toolgate_tests::clock::SimClock;
use toolgate_tests::remote::Remote;
use toolgate_tests::tools::live;

use super::*;
use crate::settings::Bounds;
use crate::{AcceptedServer, Endpoint, Place, Program, Target};

/// A server that is this shell script, in this folder, and the number of tools that were made for it.
fn server(folder: &Path, script: &str, clock: &Arc<SimClock>) -> (Arc<Server>, Arc<AtomicUsize>) {
    let command = ["/bin/sh", "-c", script];
    let place = Place::Program(Program {
        command: command.map(Into::into).into(),
        environment: [("PATH".to_owned(), "/usr/bin:/bin".into())].into(),
        folder: folder.to_owned(),
        supervisor: None,
    });
    at(folder, place, Target { command: command.map(Into::into).into(), ..Target::default() }, clock)
}

fn at(folder: &Path, place: Place, target: Target, clock: &Arc<SimClock>) -> (Arc<Server>, Arc<AtomicUsize>) {
    let settings = UpstreamSettings {
        plugin: PluginName::of_upstream("fake").unwrap(),
        place,
        target,
        approval: Approval::RequiresApproval,
        approvals: BTreeMap::new(),
        is_idempotent: false,
        idempotent: BTreeMap::new(),
        bounds: Bounds {
            message: 1 << 20,
            result: 1 << 20,
            tools: 32,
            declarations: 1 << 20,
            start: Span::from_secs(60),
            concurrency: 1,
            queue: 1,
            wait: Span::from_secs(60),
        },
        redact: Arc::new(|text| text),
    };
    let pins = Arc::new(Pins::open(folder.join("pins.json")).unwrap());
    let made = Arc::new(AtomicUsize::default());
    let count = made.clone();
    let parts = Parts {
        clock: clock.clone(),
        make: Arc::new(move |offer| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(live(&offer.name, "server"))
        }),
        runtime: tokio::runtime::Handle::current(),
    };
    (Arc::new(Server::new(settings, parts, pins)), made)
}

fn starts(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("starts")).unwrap_or_default().lines().count()
}

async fn failure(server: &Arc<Server>) -> String {
    server.usable().await.err().expect("the server never works")
}

#[tokio::test]
async fn pause_after_failures_doubles_up_to_a_minute() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SimClock::default()));
    let (server, _) = server(folder.path(), "echo >> starts", &clock);
    for (failures, seconds) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
        let why = failure(&server).await;
        assert!(!why.contains("after a pause"), "start {failures}: {why}");
        clock.advance(Span::from_millis(seconds * 1_000 - 1));
        let why = failure(&server).await;
        assert!(why.ends_with("; it is started again after a pause"), "start {failures}: {why}");
        assert_eq!((starts(folder.path()), server.fault().is_some()), (failures + 1, true));
        clock.advance(Span::from_millis(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_of_a_refused_start_is_kept() {
    let (folder, clock, remote) = (tempfile::tempdir().unwrap(), Arc::new(SimClock::default()), Remote::start());
    let url = remote.url();
    let place = Place::Url(Endpoint { url: url.parse().unwrap(), token: None });
    let (server, _) = at(folder.path(), place, Target { url: Some(url), ..Target::default() }, &clock);
    // Nobody waits longer than a minute.
    for (mode, seconds) in [("429", 7), ("503 59", 59), ("503 100000", 60)] {
        remote.become_(mode);
        let before = remote.count("initialize");
        let why = failure(&server).await;
        assert!(why.contains(&format!("asks for a pause of {seconds} seconds")), "{mode}: {why}");
        clock.advance(Span::from_millis(seconds * 1_000 - 1));
        let why = failure(&server).await;
        assert_eq!(why, "has asked for a pause, which ends in 1 seconds", "{mode}");
        assert_eq!(remote.count("initialize"), before + 1, "{mode}");
        clock.advance(Span::from_millis(1));
    }
    remote.become_("");
    server.usable().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn older_acceptance_never_replaces_a_newer_one() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SimClock::default()));
    let (server, _) = server(folder.path(), "", &clock);
    for round in 0..200 {
        let accepted = AcceptedServer { target: None, tools: tools(&[("a", &round.to_string())]) };
        let known = server.tools.known();
        let begun = Arc::new(Barrier::new(2));
        let older = {
            let (server, begun) = (server.clone(), begun.clone());
            std::thread::spawn(move || {
                begun.wait();
                server.refresh()
            })
        };
        begun.wait();
        // Now it waits for what is known, in nearly all rounds.
        (0..100).for_each(|_| std::thread::yield_now());
        Pins::open(folder.path().join("pins.json")).unwrap().accept("fake", &accepted).unwrap();
        server.pins.refresh();
        drop(known);
        older.join().unwrap();
        assert_eq!(server.tools.known().accepted.of("fake"), Some(&accepted), "round {round}");
    }
}

fn tools(texts: &[(&str, &str)]) -> BTreeMap<String, Declaration> {
    let tool = |(name, description): &(&str, &str)| {
        let text = format!(r#"{{"name":"{name}","description":"{description}","inputSchema":{{}}}}"#);
        ((*name).to_owned(), Declaration::read(&text).unwrap())
    };
    texts.iter().map(tool).collect()
}

#[tokio::test]
async fn tools_are_made_again_only_after_a_change() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SimClock::default()));
    let (server, made) = server(folder.path(), "", &clock);
    let count = || made.load(Ordering::Relaxed);
    let accept = |tools: &BTreeMap<String, Declaration>| {
        let accepted = AcceptedServer { target: Some(server.settings.target.clone()), tools: tools.clone() };
        Pins::open(folder.path().join("pins.json")).unwrap().accept("fake", &accepted).unwrap();
        server.refresh()
    };
    let both = tools(&[("a", "one"), ("b", "one")]);
    assert!(accept(&both) && !server.refresh());
    let catalog = server.catalog();
    assert_eq!((count(), catalog.tools.len()), (2, 2));
    // Nothing is made for a list without a change: the catalog is the same one.
    server.publish(both.clone()).await.unwrap();
    let listed = server.catalog();
    server.publish(both.clone()).await.unwrap();
    assert!(Arc::ptr_eq(&listed, &server.catalog()) && !Arc::ptr_eq(&listed, &catalog));
    let changed = tools(&[("a", "two"), ("b", "one"), ("c", "one")]);
    server.publish(changed.clone()).await.unwrap();
    assert_eq!((count(), server.catalog().tools.len(), server.catalog().problems.len()), (2, 1, 2));
    assert!(accept(&changed));
    assert_eq!((count(), server.catalog().tools.len()), (4, 3), "`b` is not made again");
}
