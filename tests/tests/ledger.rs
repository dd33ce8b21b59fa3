//! The example ledger on a host: a transfer is cancelled after each of its writes, and the next call finishes it or finds that
//! it has moved nothing.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use capabilities::keyvalue::{BucketError, Buckets, EntryKey, KeyValueQuota, MemoryBuckets, Service, Swapped};
use capabilities::{Grants, Services};
use dispatch::{Dispatcher, Handle, Until};
use domain::{Outcome, PluginName, Principal, Span, Turn, principal::Role};
use registry::{GrantHolder, PluginSettings, Registry, RegistrySettings};
use sandbox::{Sandbox, SandboxSettings};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_tests::guests::plugin;
use toolgate_tests::requests::{answer, call, conversation, principal, turn};
use toolgate_tests::world::World;

/// Buckets that stop a call after one of its writes, until the test lets it go on.
struct HeldBuckets {
    inner: MemoryBuckets,
    /// The writes up to the one that is held. 0 holds none.
    left: AtomicUsize,
    held: Notify,
    released: Mutex<mpsc::Receiver<()>>,
}

impl HeldBuckets {
    fn new() -> (Arc<Self>, mpsc::Sender<()>) {
        let (release, released) = mpsc::channel();
        let (inner, left, held) = (MemoryBuckets::default(), AtomicUsize::new(0), Notify::new());
        (Arc::new(Self { inner, left, held, released: Mutex::new(released) }), release)
    }

    fn hold_after(&self, writes: usize) {
        self.left.store(writes, Ordering::Relaxed);
    }

    fn wrote(&self) {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left == Ok(1) {
            self.held.notify_one();
            self.released.lock().unwrap().recv().unwrap();
        }
    }
}

impl Buckets for HeldBuckets {
    fn get(&self, entry: EntryKey<'_>) -> Result<Option<Vec<u8>>, BucketError> {
        self.inner.get(entry)
    }

    fn set(&self, entry: EntryKey<'_>, value: &[u8], quota: KeyValueQuota) -> Result<(), BucketError> {
        self.inner.set(entry, value, quota).inspect(|()| self.wrote())
    }

    fn delete(&self, entry: EntryKey<'_>) -> Result<(), BucketError> {
        self.inner.delete(entry).inspect(|()| self.wrote())
    }

    fn list(
        &self,
        plugin: &PluginName,
        bucket: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, BucketError> {
        self.inner.list(plugin, bucket, after, limit)
    }

    fn compare_and_swap(
        &self,
        entry: EntryKey<'_>,
        seen: Option<&[u8]>,
        value: &[u8],
        quota: KeyValueQuota,
    ) -> Result<Swapped, BucketError> {
        let swapped = self.inner.compare_and_swap(entry, seen, value, quota)?;
        if swapped == Swapped::Done {
            self.wrote();
        }
        Ok(swapped)
    }
}

/// A host with the ledger.
struct LedgerHost {
    world: World,
    handle: Handle,
    _host: Dispatcher,
    caller: Principal,
    calls: usize,
}

impl LedgerHost {
    async fn new(buckets: Arc<HeldBuckets>, data: &std::path::Path) -> Self {
        let services = Services { keyvalue: Service::over(buckets), ..Services::default() };
        let engine = Sandbox::new(SandboxSettings { pool: 8, services, ..SandboxSettings::default() }).unwrap();
        let name = PluginName::new("ledger").unwrap();
        let grants = Grants { keyvalue: Some(KeyValueQuota::default()), ..Grants::default() };
        let granted = PluginSettings { grants: Arc::new(grants), holder: GrantHolder::AnyComponent, limits: None };
        let mut settings = RegistrySettings::new(data);
        settings.plugins.insert(name.clone(), granted);
        let world = World::default();
        let registry = Registry::open(settings, engine, world.clock.clone(), Arc::new(|_| {}), None).await.unwrap();
        registry.load(name, plugin("ledger")).await.unwrap();
        let host = Dispatcher::start(world.parts(Arc::new(registry)));
        Self { world, handle: host.handle(), _host: host, caller: principal("caller", Role::Caller), calls: 0 }
    }

    async fn submit(&mut self, tool: &str, arguments: Value) -> Turn {
        self.calls += 1;
        let call = call(&format!("call-{}", self.calls), tool, arguments.to_string());
        self.handle.submit(&self.caller, turn("c", [call])).await.unwrap().turn
    }

    /// The result of a call.
    async fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let (turn, conversation) = (self.submit(tool, arguments).await, conversation("c"));
        let settled = self.handle.wait(&self.caller, &conversation, turn.id, Until::Ended, Span::from_secs(60));
        match settled.await.unwrap().calls[0].outcome() {
            Some(Outcome::Ok { value, .. }) => serde_json::from_str(value.as_str()).unwrap(),
            other => panic!("{tool}: {other:?}"),
        }
    }

    /// Cancels a turn. Returns after its guest has ended.
    async fn cancel(&self, turn: &Turn) -> Turn {
        let cancelled = self.handle.cancel(&self.caller, &conversation("c"), turn.id).await.unwrap();
        while self.handle.counts().running_calls > 0 {
            self.world.clock.advance(Span::from_secs(1));
            tokio::task::yield_now().await;
        }
        cancelled
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_call_finishes_a_transfer_that_was_cancelled_on_a_host() {
    let mut finished = 0;
    for writes in 1..8 {
        let ((buckets, release), data) = (HeldBuckets::new(), tempfile::tempdir().unwrap());
        let mut host = LedgerHost::new(buckets.clone(), data.path()).await;
        for (account, balance) in [("alice", 100), ("bob", 5), ("carol", 0)] {
            host.result("ledger_open", json!({"account": account, "opening_balance": balance})).await;
        }
        let order = json!({"from": "alice", "to": "bob", "amount_cents": 30});
        let transfer = host.submit("ledger_transfer", order).await;
        let (suspension, _) = transfer.calls[0].suspensions.first().unwrap();
        buckets.hold_after(writes);
        host.handle.resolve(&principal("alice", Role::Approver), answer(suspension.id, "approve")).await.unwrap();
        buckets.held.notified().await;
        let cancelled = host.cancel(&transfer).await;
        assert_eq!(cancelled.calls[0].outcome(), Some(&Outcome::Cancelled), "after {writes} writes");
        release.send(()).unwrap();

        // A call that is about neither account finishes the transfer.
        assert_eq!(host.result("ledger_balance", json!({"account": "carol"})).await["balance_cents"], 0);
        let audit = host.result("ledger_audit", json!({})).await;
        assert_eq!(
            (&audit["total_cents"], &audit["opened_cents"]),
            (&json!(105), &json!(105)),
            "after {writes} writes"
        );
        let alice = host.result("ledger_balance", json!({"account": "alice"})).await["balance_cents"].clone();
        // The third write debits.
        let (left, transfers) = if writes < 3 { (100, 0) } else { (70, 1) };
        assert_eq!((&alice, &audit["transfers"]), (&json!(left), &json!(transfers)), "after {writes} writes");
        finished += transfers;
    }
    assert_eq!(finished, 5);
}
