//! One server with the clock of the tests.

use std::path::Path;

use domain::{PluginName, tool::Approval};
use toolgate_tests::clock::SimClock;
use toolgate_tests::tools::live;

use super::*;
use crate::settings::Bounds;
use crate::{AcceptedServer, Place, Program, Target};

/// A server that is this shell script, in this folder, and the number of tools that were made for it.
fn server(folder: &Path, script: &str, clock: &Arc<SimClock>) -> (Arc<Server>, Arc<AtomicUsize>) {
    let command = ["/bin/sh", "-c", script];
    let settings = UpstreamSettings {
        plugin: PluginName::of_upstream("fake").unwrap(),
        place: Place::Program(Program {
            command: command.map(Into::into).into(),
            environment: [("PATH".to_owned(), "/usr/bin:/bin".into())].into(),
            folder: folder.to_owned(),
            supervisor: None,
        }),
        target: Target { command: command.map(Into::into).into(), ..Target::default() },
        approval: Approval::RequiresApproval,
        approvals: BTreeMap::new(),
        is_idempotent: false,
        idempotent: BTreeMap::new(),
        bounds: Bounds {
            message: 1 << 20,
            result: 1 << 20,
            tools: 16,
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
