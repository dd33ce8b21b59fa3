//! Components that several hosts share.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dispatch::ports::{End, Tools as _};
use domain::{Digest, Outcome};

use super::running::{ok, run, run_of};
use crate::testing::{TestRegistry, one, plugin};
use crate::{NotLoaded, RemoteComponents};

const AGE: Duration = Duration::from_secs(60);

/// The bytes, the record, and whether a host needed it since the last collection.
type Kept = (Vec<u8>, Vec<u8>, bool);

/// Components in memory.
#[derive(Default)]
struct InMemory {
    kept: Mutex<HashMap<Digest, Kept>>,
    is_down: AtomicBool,
}

impl InMemory {
    fn has(&self, component: Digest) -> bool {
        self.kept.lock().unwrap().contains_key(&component)
    }

    fn check(&self) -> io::Result<()> {
        if self.is_down.load(Ordering::SeqCst) { Err(io::Error::other("it is down")) } else { Ok(()) }
    }
}

impl RemoteComponents for InMemory {
    fn keep(&self, component: Digest, bytes: &[u8], record: &[u8]) -> io::Result<()> {
        self.check()?;
        self.kept.lock().unwrap().insert(component, (bytes.to_vec(), record.to_vec(), true));
        Ok(())
    }

    fn bytes(&self, component: Digest) -> io::Result<Option<Vec<u8>>> {
        self.check()?;
        Ok(self.kept.lock().unwrap().get(&component).map(|kept| kept.0.clone()))
    }

    fn record(&self, component: Digest) -> io::Result<Option<Vec<u8>>> {
        self.check()?;
        Ok(self.kept.lock().unwrap().get(&component).map(|kept| kept.1.clone()))
    }

    fn live(&self, components: &HashSet<Digest>) -> io::Result<HashSet<Digest>> {
        self.check()?;
        let mut kept = self.kept.lock().unwrap();
        let known = kept.iter_mut().filter(|(digest, _)| components.contains(digest));
        Ok(known.map(|(digest, kept)| (kept.2 = true, *digest).1).collect())
    }

    fn collect(&self, pinned: &HashSet<Digest>, older_than: Duration) -> io::Result<usize> {
        assert_eq!(older_than, AGE);
        let mut kept = self.kept.lock().unwrap();
        let before = kept.len();
        kept.retain(|digest, kept| pinned.contains(digest) || std::mem::take(&mut kept.2));
        Ok(before - kept.len())
    }
}

#[tokio::test]
async fn call_runs_where_its_component_was_never_loaded() {
    let remote = Arc::new(InMemory::default());
    let (a, b) = (TestRegistry::sharing(remote.clone()), TestRegistry::sharing(remote.clone()));
    let component = a.load("guest", &one("echo")).expect("loads").component;
    let call = run(&a, "echo", "1");
    let again = || run_of(&call.pinned, "echo", "1");
    let pinned = || b.registry.pinned(&plugin("guest"), component, "echo");
    assert!(pinned().is_none(), "it does not ask the others");
    assert_eq!(b.registry.recall(&call.pinned).await, Ok(()));
    assert!(pinned().is_some());
    assert_eq!(b.fake.asked.load(Ordering::SeqCst), 0, "its record came with it");
    // From now on, the host has it.
    remote.kept.lock().unwrap().clear();
    assert_eq!(b.registry.run(again()).await, ok("1"));
    assert!(b.tools().is_empty());

    // A record of a form that this host does not know.
    let c = TestRegistry::sharing(remote.clone());
    remote.keep(component, &one("echo"), b"{}").expect("keeps");
    assert_eq!(c.registry.run(again()).await, ok("1"));
    assert_eq!(c.fake.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn shared_bytes_that_changed_are_never_run() {
    let remote = Arc::new(InMemory::default());
    let (a, b) = (TestRegistry::sharing(remote.clone()), TestRegistry::sharing(remote.clone()));
    let component = a.load("guest", &one("echo")).expect("loads").component;
    let call = || run_of(&run(&a, "echo", "1").pinned, "echo", "1");
    let record = remote.record(component).expect("reads").expect("is there");
    remote.keep(component, &one("other"), &record).expect("keeps");
    assert_eq!(b.registry.run(call()).await, End::unrun(Outcome::Invalidated.into()));
    assert!(!b.registry.shared.components.has(component));
    // A host that cannot ask the others does not know that it is lost.
    remote.is_down.store(true, Ordering::SeqCst);
    let failed = b.registry.run(call()).await;
    assert!(matches!(failed.ended.last(), Outcome::Failed(_)));
}

#[tokio::test]
async fn component_that_cannot_be_shared_is_not_live() {
    let remote = Arc::new(InMemory::default());
    let world = TestRegistry::sharing(remote.clone());
    remote.is_down.store(true, Ordering::SeqCst);
    let Err(NotLoaded::Fault(error)) = world.load("guest", &one("echo")) else { panic!("it is live") };
    assert_eq!(error.to_string(), "it is down");
    assert!(world.tools().is_empty());
    remote.is_down.store(false, Ordering::SeqCst);
    let component = world.load("guest", &one("echo")).expect("loads").component;
    assert!(remote.has(component));
    // Its record was kept by the first attempt.
    assert!(!remote.record(component).expect("reads").expect("is there").is_empty());
}

#[tokio::test]
async fn shared_components_stay_while_a_host_needs_them() {
    let remote = Arc::new(InMemory::default());
    let (a, b) = (TestRegistry::sharing(remote.clone()), TestRegistry::sharing(remote.clone()));
    let old = a.load("guest", &one("old")).expect("loads").component;
    let pinned = a.load("guest", &one("pinned")).expect("loads").component;
    let live = a.load("guest", &one("live")).expect("loads").component;
    let collect = || b.registry.collect_shared(HashSet::from([pinned]), AGE);
    assert_eq!(collect().await.expect("collects"), 0, "all of them were live");
    a.registry.share(HashSet::new()).await.expect("shares");
    assert_eq!(collect().await.expect("collects"), 1);
    assert_eq!([old, pinned, live].map(|component| remote.has(component)), [false, true, true]);
    // The components that are needed are kept again if they were lost.
    remote.kept.lock().unwrap().clear();
    b.registry.share(HashSet::from([pinned])).await.expect("shares");
    assert!(remote.kept.lock().unwrap().is_empty(), "it does not have it");
    a.registry.share(HashSet::from([pinned])).await.expect("shares");
    assert_eq!([old, pinned, live].map(|component| remote.has(component)), [false, true, true]);
}
