//! Webhooks with the real loop: the messages, their order and number, and kills. The receivers are simulated.
//! `tests/tests/webhooks_http.rs` uses HTTP.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "webhooks/edited.rs"]
mod edited;
#[path = "webhooks/turns.rs"]
mod turns;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dispatch::ports::{AsDeclared, Clock as _, DeliveryRow, Outbox as _, Policy, PolicyQuery, StoreFault, Subject};
use dispatch::{Dispatcher, Parts, SuspensionView};
use domain::{
    PrincipalId, Span, SuspensionId, Turn, TurnId,
    approvers::{Escalate, Need},
    gate::{RuleEffect, Verdict},
    principal::{Channels, Role},
    suspension::SuspensionKind,
    tool::Risk,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolgate_tests::requests::{answer, call, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};
use webhook::{
    DeliveryWorker, LinkMaker, LinkSettings, Reply, Request, SigningSecret, Transport, Webhook, WebhookEvent, Webhooks,
};

/// The reaction of a receiver to one message.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Answers with this status.
    Answers(u16),
    /// Receives it and never answers.
    Hangs,
}

/// The received messages, by the name of the host.
#[derive(Default)]
struct Receivers {
    got: watch::Sender<Vec<(String, Request)>>,
    /// The reactions of each receiver in order. After them it answers 200.
    script: Mutex<BTreeMap<String, Vec<Does>>>,
}

#[async_trait]
impl Transport for Receivers {
    async fn post(&self, post: Request) -> Result<Reply, String> {
        let name = post.url.host_str().unwrap().to_owned();
        let next = match self.script.lock().unwrap().get_mut(&name) {
            Some(script) if !script.is_empty() => script.remove(0),
            _ => Does::Answers(200),
        };
        self.got.send_modify(|got| got.push((name, post)));
        match next {
            Does::Answers(status) => Ok(Reply { status, retry_after: None }),
            Does::Hangs => std::future::pending().await,
        }
    }
}

/// Two people must approve `tool_3`. After 10 and 20 minutes, others may approve too.
struct Wider;

#[async_trait]
impl Policy for Wider {
    async fn decide(&self, question: PolicyQuery) -> Verdict {
        if question.known.tool.name.as_str() != "tool_3" {
            return AsDeclared.decide(question).await;
        }
        let need = |who: &str, minutes: u64, to: &str| Need {
            who: [who.parse().unwrap()].into(),
            quorum: 1,
            escalate: Some(Escalate { after: Span::from_secs(minutes * 60), to: [to.parse().unwrap()].into() }),
            via: Channels::ANY,
        };
        Verdict {
            rule: RuleEffect::Ask,
            by: Some("large".into()),
            reason: Some("it is \u{202e}much".into()),
            risk: Some(Risk::High),
            needs: [need("group:finance", 20, "role:admin"), need("principal:bob", 10, "group:finance")].into(),
            ..Verdict::default()
        }
    }
}

/// An approval whose schema has defaults.
const DEFAULTS: &str = r#"server!:parameters={"properties":{"to":{"default":"all"}}}"#;

/// The number of polls for deliveries. Everything else runs on this thread between the polls.
const PATIENCE: u32 = 20_000;

struct FixedLink;

#[async_trait]
impl LinkMaker for FixedLink {
    async fn link(&self, webhook: &str, of: SuspensionId, wanted: &LinkSettings) -> Result<Option<String>, String> {
        let LinkSettings { principal, ttl, base } = wanted;
        Ok(Some(format!("{base}link/{webhook}/{of}/{principal}/{}", ttl.millis())))
    }
}

/// A host whose store takes no commits while the flag is set.
struct FullDisk(dispatch::Handle, Arc<AtomicBool>);

#[async_trait]
impl webhook::HostView for FullDisk {
    async fn suspension(&self, suspension: SuspensionId) -> Result<Option<SuspensionView>, String> {
        webhook::HostView::suspension(&self.0, suspension).await
    }

    async fn turn(&self, turn: TurnId) -> Result<Option<Turn>, String> {
        webhook::HostView::turn(&self.0, turn).await
    }

    async fn record(&self, row: DeliveryRow) -> Result<(), StoreFault> {
        match webhook::HostView::store_failure(self) {
            Some(fault) => Err(fault),
            None => webhook::HostView::record(&self.0, row).await,
        }
    }

    fn store_failure(&self) -> Option<StoreFault> {
        let fault = || StoreFault::of_program("write a batch", "there is no space".to_owned());
        self.1.load(Ordering::Relaxed).then(fault)
    }
}

/// A running host, and the parts that survive it.
struct WebhookHost {
    full: Arc<AtomicBool>,
    lasting: World,
    receivers: Arc<Receivers>,
    webhooks: Vec<Webhook>,
    running: Option<(Dispatcher, Vec<JoinHandle<()>>)>,
}

impl WebhookHost {
    /// With webhooks of these names, at hosts of these names.
    fn new(names: &[&str]) -> Self {
        let mut world = Self {
            full: Arc::default(),
            lasting: World::default(),
            receivers: Arc::default(),
            webhooks: names.iter().map(|name| hook(name)).collect(),
            running: None,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let tools =
            WordTools::new(&["server!", "human", "client", "server", "client!", DEFAULTS], |_| async { done() });
        let webhooks = Arc::new(Webhooks::new(self.webhooks.clone()));
        let parts = self.lasting.parts(Arc::new(tools));
        let host = Dispatcher::start(Parts { policy: Arc::new(Wider), subscribers: webhooks.clone(), ..parts });
        let worker = DeliveryWorker {
            host: Arc::new(FullDisk(host.handle(), self.full.clone())),
            outbox: self.lasting.store.clone(),
            peers: self.lasting.store.clone(),
            clock: self.lasting.clock.clone(),
            transport: self.receivers.clone(),
            links: Some(Arc::new(FixedLink)),
        };
        self.running = Some((host, webhooks.deliver(&worker)));
    }

    /// Stops everything immediately.
    fn kill(&mut self) {
        let (host, tasks) = self.running.take().unwrap();
        tasks.iter().for_each(JoinHandle::abort);
        drop(host);
    }

    fn script(&self, name: &str, does: &[Does]) {
        self.receivers.script.lock().unwrap().insert(name.to_owned(), does.to_vec());
    }

    /// Submits a call of a tool, and returns its suspension.
    async fn ask(&self, id: &str, tool: &str) -> SuspensionId {
        let request = turn("c", [call(id, tool, r#"{"to": "eve\u202e"}"#)]);
        let handle = self.running.as_ref().unwrap().0.handle();
        let submitted = handle.submit(&principal("agent", Role::Caller), request).await.unwrap();
        submitted.turn.pending().next().unwrap().2.id
    }

    async fn deny(&self, suspension: SuspensionId) {
        self.answer(suspension, "deny").await;
    }

    async fn answer(&self, suspension: SuspensionId, decision: &str) {
        let handle = self.running.as_ref().unwrap().0.handle();
        handle.resolve(&principal("bob", Role::Approver), answer(suspension, decision)).await.unwrap();
    }

    /// All received messages, when there are this many: receiver, id and body.
    async fn got(&self, count: usize) -> Vec<(String, String, Value)> {
        let mut got = self.receivers.got.subscribe();
        let got = got.wait_for(|got| got.len() >= count).await.unwrap().clone();
        let id = |post: &Request| post.headers.iter().find(|(name, _)| *name == "webhook-id").unwrap().1.clone();
        got.iter().map(|(name, post)| (name.clone(), id(post), serde_json::from_str(&post.body).unwrap())).collect()
    }

    /// The same as short texts: receiver and event.
    async fn received(&self, count: usize) -> Vec<String> {
        let event = |body: &Value| body["type"].as_str().unwrap().replace("suspension.", "");
        self.got(count).await.iter().map(|(name, _, body)| format!("{name} {}", event(body))).collect()
    }

    /// The stored deliveries of a suspension or a turn, when they match.
    async fn rows(&self, of: impl Into<Subject>, wanted: &[&str]) -> Vec<DeliveryRow> {
        let (of, mut said) = (of.into(), Vec::new());
        for _ in 0..PATIENCE {
            let rows = self.lasting.store.deliveries(of).await.unwrap();
            let received = |row: &DeliveryRow| {
                let id = row.message_id();
                let (_, event) = id.split_once('-').unwrap();
                format!("{} {event} {} {}", row.webhook, row.state.as_str(), row.attempts)
            };
            said = rows.iter().map(received).collect();
            if said == wanted {
                return rows;
            }
            tokio::task::yield_now().await;
        }
        panic!("expected {wanted:?}, found {said:?}")
    }
}

fn hook(name: &str) -> Webhook {
    Webhook {
        name: name.into(),
        url: format!("https://{name}").parse().unwrap(),
        secret: SigningSecret::new("a raw secret of 27 bytes...").unwrap(),
        events: WebhookEvent::OF_SUSPENSIONS.into(),
        reports: Arc::new(|_| true),
        reports_turn: Arc::new(|_| true),
        arguments: false,
        private: false,
        link: None,
    }
}

#[tokio::test]
async fn messages_are_sent_in_order_and_recorded() {
    let mut world = WebhookHost::new(&["pager"]);
    let suspension = world.ask("a", "tool_0").await;
    world.rows(suspension, &["pager opened delivered 1"]).await;
    world.deny(suspension).await;
    let rows = world.rows(suspension, &["pager opened delivered 1", "pager closed delivered 1"]).await;
    assert_eq!(rows[1].last.as_ref().unwrap().status, Some(200));

    let got = world.got(2).await;
    assert_eq!(got.len(), 2);
    let (opened, closed) = (&got[0], &got[1]);
    assert_eq!(
        (opened.1.as_str(), closed.1.as_str()),
        (&*format!("{suspension}-opened"), &*format!("{suspension}-closed"))
    );
    assert_eq!(opened.2["id"], opened.1);
    let said = &opened.2["suspension"];
    assert_eq!((&said["state"], &said["kind"], &said["tool"]), (&"open".into(), &"approval".into(), &"tool_0".into()));
    assert_eq!(
        (&said["caller"], &said["plugin"], &said["prompt"]),
        (&"agent".into(), &"words".into(), &"tool_0?".into())
    );
    assert_eq!((said.get("arguments"), said.get("closed"), opened.2.get("url")), (None, None, None));
    assert_eq!(
        closed.2["suspension"]["closed"],
        serde_json::json!({"state": "deny", "by": "bob", "at": "1970-01-01T00:16:40.000Z", "via": "api"})
    );

    let handle = world.running.as_ref().unwrap().0.handle();
    assert_eq!(handle.deliveries(&principal("bob", Role::Approver), suspension).await.unwrap(), rows);
    assert_eq!(handle.deliveries(&principal("agent", Role::Caller), suspension).await.unwrap(), []);
    world.kill();
}

#[tokio::test]
async fn message_is_not_sent_while_it_cannot_be_recorded() {
    let world = WebhookHost::new(&["pager"]);
    world.full.store(true, Ordering::Relaxed);
    let suspension = world.ask("a", "tool_0").await;
    for _ in 0..3 {
        world.lasting.clock.advance(Span::from_secs(2));
        settle().await;
    }
    assert!(world.receivers.got.borrow().is_empty(), "each attempt would send it again");
    world.full.store(false, Ordering::Relaxed);
    world.lasting.clock.advance(Span::from_secs(2));
    world.rows(suspension, &["pager opened delivered 1"]).await;
    assert_eq!(world.received(1).await.len(), 1);
}

#[tokio::test]
async fn failed_message_is_retried_with_its_id_and_a_new_signature() {
    let world = WebhookHost::new(&["pager"]);
    world.script("pager", &[Does::Answers(500)]);
    let suspension = world.ask("a", "tool_0").await;
    let rows = world.rows(suspension, &["pager opened pending 1"]).await;
    let pause = rows[0].next().unwrap() - world.lasting.clock.now();
    world.lasting.clock.advance(Span::from_millis(pause.millis() - 1));
    // Not yet: the same task sends another one first.
    let second = world.ask("b", "tool_0").await;
    world.rows(second, &["pager opened delivered 1"]).await;
    assert_eq!(world.received(2).await.len(), 2);

    world.lasting.clock.advance(Span::from_millis(1));
    world.rows(suspension, &["pager opened delivered 2"]).await;
    let got = world.receivers.got.borrow().clone();
    let header = |n: usize, at: usize| got[n].1.headers[at].clone();
    assert_eq!(got.len(), 3);
    assert_eq!(header(0, 0), header(2, 0), "the id is the same");
    assert_ne!(header(0, 1), header(2, 1), "each attempt has its own time");
    assert_ne!(header(0, 2), header(2, 2), "and its own signature");
}

#[tokio::test]
async fn later_message_waits_for_the_earlier_one() {
    let world = WebhookHost::new(&["pager"]);
    world.script("pager", &[Does::Answers(503), Does::Answers(503)]);
    let suspension = world.ask("a", "tool_0").await;
    let rows = world.rows(suspension, &["pager opened pending 1"]).await;
    world.deny(suspension).await;
    // The second row is postponed without an attempt, until the first is due.
    let due = rows[0].next();
    let mut put_off = false;
    for _ in 0..PATIENCE {
        put_off = world
            .lasting
            .store
            .deliveries(suspension.into())
            .await
            .unwrap()
            .get(1)
            .is_some_and(|row| row.next() == due);
        if put_off {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(put_off);
    for attempts in [2, 3] {
        world.lasting.clock.advance(Span::from_secs(30));
        let opened = format!("pager opened {} {attempts}", if attempts == 3 { "delivered" } else { "pending" });
        let closed = if attempts == 3 { "pager closed delivered 1" } else { "pager closed pending 0" };
        world.rows(suspension, &[&opened, closed]).await;
    }
    assert_eq!(world.received(4).await, ["pager opened", "pager opened", "pager opened", "pager closed"]);
}

#[tokio::test]
async fn unrecorded_delivery_is_repeated_with_its_id_after_a_kill() {
    let mut world = WebhookHost::new(&["pager"]);
    world.script("pager", &[Does::Hangs]);
    let suspension = world.ask("a", "tool_0").await;
    world.got(1).await;
    world.kill();
    world.start();
    world.rows(suspension, &["pager opened delivered 1"]).await;
    let got = world.got(2).await;
    assert_eq!((got.len(), &got[0].1), (2, &got[1].1));
}

#[tokio::test]
async fn committed_message_is_sent_after_a_kill() {
    let mut world = WebhookHost::new(&["pager"]);
    // No delivery worker runs, as if the kill came between the commit and the first scan.
    world.running.as_ref().unwrap().1.iter().for_each(JoinHandle::abort);
    let suspension = world.ask("a", "tool_0").await;
    world.rows(suspension, &["pager opened pending 0"]).await;
    world.kill();
    world.start();
    world.rows(suspension, &["pager opened delivered 1"]).await;
}

#[tokio::test]
async fn webhook_that_does_not_answer_delays_no_other() {
    let world = WebhookHost::new(&["dead", "pager"]);
    world.script("dead", &[Does::Hangs; 20]);
    for call in 0..10 {
        let suspension = world.ask(&format!("a{call}"), "tool_0").await;
        world.rows(suspension, &["dead opened pending 0", "pager opened delivered 1"]).await;
    }
    let received = world.received(10).await;
    assert_eq!(received.iter().filter(|received| *received == "pager opened").count(), 10);
}

#[tokio::test]
async fn unreachable_webhook_is_given_up() {
    let mut world = WebhookHost::new(&[]);
    world.kill();
    // The suspension expires meanwhile, which does not matter here.
    world.webhooks =
        ["gone", "dead"].map(|name| Webhook { events: [WebhookEvent::Opened].into(), ..hook(name) }).into();
    world.start();
    world.script("gone", &[Does::Answers(410)]);
    world.script("dead", &[Does::Answers(500); 12]);
    let suspension = world.ask("a", "tool_0").await;
    for attempts in 1..12 {
        world.rows(suspension, &[&format!("dead opened pending {attempts}"), "gone opened failed 1"]).await;
        world.lasting.clock.advance(Span::from_secs(4_500));
    }
    let rows = world.rows(suspension, &["dead opened failed 12", "gone opened failed 1"]).await;
    assert_eq!(rows[0].last.as_ref().unwrap().status, Some(500));
    assert_eq!(world.lasting.store.webhooks_with_pending().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn deliveries_to_a_removed_webhook_are_given_up() {
    let mut world = WebhookHost::new(&["pager", "old"]);
    world.script("old", &[Does::Answers(500)]);
    let suspension = world.ask("a", "tool_0").await;
    world.rows(suspension, &["old opened pending 1", "pager opened delivered 1"]).await;
    world.kill();
    world.webhooks.retain(|webhook| webhook.name != "old");
    world.start();
    let rows = world.rows(suspension, &["old opened failed 1", "pager opened delivered 1"]).await;
    let why = rows[0].last.as_ref().unwrap().error.as_deref();
    assert_eq!(why, Some("no webhook of this name is configured"));
}

#[tokio::test]
async fn each_webhook_gets_only_its_events() {
    let mut world = WebhookHost::new(&[]);
    world.kill();
    let base = "https://gate.test".parse().unwrap();
    let link = LinkSettings { principal: PrincipalId::new("oncall").unwrap(), ttl: Span::from_secs(60), base };
    world.webhooks = vec![
        Webhook { events: [WebhookEvent::Closed].into(), ..hook("ends") },
        Webhook { reports: Arc::new(|row| row.kind == SuspensionKind::Elicitation), ..hook("questions") },
        Webhook { arguments: true, link: Some(link), reports: Arc::new(|row| row.tool == "tool_0"), ..hook("trusted") },
    ];
    world.start();
    let (approval, question) = (world.ask("a", "tool_0").await, world.ask("b", "tool_1").await);
    world.rows(approval, &["trusted opened delivered 1"]).await;
    world.rows(question, &["questions opened delivered 1"]).await;
    world.deny(approval).await;
    world
        .rows(approval, &["trusted opened delivered 1", "ends closed delivered 1", "trusted closed delivered 1"])
        .await;

    let got = world.got(4).await;
    let of = |name: &str| got.iter().filter(|got| got.0 == name).map(|got| &got.2).collect::<Vec<_>>();
    let trusted = of("trusted");
    assert_eq!(trusted[0]["suspension"]["arguments"], serde_json::json!({"to": "eve\u{202e}"}));
    assert_eq!(trusted[0]["url"], format!("https://gate.test/link/trusted/{approval}/oncall/60000"));
    assert_eq!((trusted[1]["suspension"].get("arguments"), trusted[1].get("url")), (None, None), "it has ended");
    assert_eq!((of("ends").len(), of("questions").len()), (1, 1));
    assert_eq!(of("questions")[0]["suspension"].get("arguments"), None);
}

#[tokio::test]
async fn escalation_message_has_the_reason_and_the_people() {
    let world = WebhookHost::new(&["pager"]);
    let suspension = world.ask("a", "tool_3").await;
    world.rows(suspension, &["pager opened delivered 1"]).await;
    world.lasting.clock.advance(Span::from_secs(11 * 60));
    world.rows(suspension, &["pager opened delivered 1", "pager escalated-1 delivered 1"]).await;
    world.lasting.clock.advance(Span::from_secs(10 * 60));
    let both = ["pager opened delivered 1", "pager escalated-0 delivered 1", "pager escalated-1 delivered 1"];
    world.rows(suspension, &both).await;

    let got = world.got(3).await;
    assert_eq!(world.received(3).await, ["pager opened", "pager escalated", "pager escalated"]);
    let said = &got[1].2["suspension"];
    assert_eq!((&said["risk"], &said["reason"]), (&"high".into(), &"it is \\u{202e}much".into()));
    assert_eq!((&said["asked_by"], &said["prompt_by"]), (&"large".into(), &"host".into()));
    let wanted = serde_json::json!([
        {"who": ["group:finance"], "quorum": 1, "escalates_to": ["role:admin"], "escalated": false},
        {"who": ["principal:bob"], "quorum": 1, "escalates_to": ["group:finance"], "escalated": true},
    ]);
    assert_eq!(said["needs"], wanted);
    assert_eq!((&got[1].1, &got[2].1), (&format!("{suspension}-escalated-1"), &format!("{suspension}-escalated-0")));
}
