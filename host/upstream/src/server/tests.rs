//! One server with the clock of the tests.

use std::path::Path;

use domain::{PluginName, tool::Approval};
use toolgate_tests::clock::SimClock;

use super::*;
use crate::settings::Bounds;
use crate::{Place, Program, Target};

/// A server that is this shell script, in this folder.
fn server(folder: &Path, script: &str, clock: &Arc<SimClock>) -> Arc<Server> {
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
    let parts = Parts {
        clock: clock.clone(),
        make: Arc::new(|_| Err(vec!["no tool is offered here".to_owned()])),
        runtime: tokio::runtime::Handle::current(),
    };
    Arc::new(Server::new(settings, parts, pins))
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
    let server = server(folder.path(), "echo >> starts", &clock);
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
