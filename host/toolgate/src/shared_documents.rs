//! Small files that all hosts on one database share. Each is replaced as a whole, and only if no other host has replaced it meanwhile.
//!
//! A request must know what was changed at another host before it began. So a look asks the database for the versions of all
//! documents. It counts for all requests of the next [`LOOK`], and a change waits as long before it returns.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use dispatch::ports::StoreFault;
use domain::{Span, Timestamp};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A request needs no look if one began at most this long before it arrived.
pub(crate) const LOOK: Span = Span::from_millis(10);

/// How often a change is tried that other hosts have overtaken.
const MAX_ATTEMPTS: usize = 100;

/// Whether a look that began at this time counts for a request that arrived at that time.
pub(crate) fn counts(began: Instant, arrived: Instant) -> bool {
    arrived < began + Duration::from_millis(LOOK.millis())
}

/// Documents with versions.
#[async_trait]
pub(crate) trait Documents: Send + Sync {
    /// The version of each document.
    async fn versions(&self) -> Result<BTreeMap<String, i64>, StoreFault>;

    async fn read(&self, name: &str) -> Result<Option<(i64, Vec<u8>)>, StoreFault>;

    /// Replaces a document that has the expected version. `None`: makes one that does not exist yet. Returns whether it did so.
    async fn replace(&self, name: &str, expected: Option<i64>, content: Vec<u8>) -> Result<bool, StoreFault>;

    /// The time of the database.
    async fn now(&self) -> Result<Timestamp, StoreFault>;
}

#[cfg(feature = "postgres")]
#[async_trait]
impl Documents for store::Documents {
    async fn versions(&self) -> Result<BTreeMap<String, i64>, StoreFault> {
        self.versions().await
    }

    async fn read(&self, name: &str) -> Result<Option<(i64, Vec<u8>)>, StoreFault> {
        self.read(name).await
    }

    async fn replace(&self, name: &str, expected: Option<i64>, content: Vec<u8>) -> Result<bool, StoreFault> {
        self.replace(name, expected, content).await
    }

    async fn now(&self) -> Result<Timestamp, StoreFault> {
        self.now().await.map(Timestamp::from_millis)
    }
}

/// The documents of a database, and the last look at their versions.
pub(crate) struct SharedDocuments {
    documents: Arc<dyn Documents>,
    last: RwLock<Option<Look>>,
    /// Held by the task that looks.
    looking: Arc<Mutex<()>>,
    /// Held during a change, so that only other hosts overtake it.
    changing: Mutex<()>,
}

/// A look at the versions of all documents.
#[derive(Clone)]
pub(crate) struct Look {
    pub(crate) began: Instant,
    versions: Arc<BTreeMap<String, i64>>,
}

impl Look {
    pub(crate) fn version(&self, name: &str) -> Option<i64> {
        self.versions.get(name).copied()
    }
}

impl SharedDocuments {
    #[cfg_attr(not(any(test, feature = "postgres")), expect(dead_code, reason = "only a database has documents"))]
    pub(crate) fn new(documents: Arc<dyn Documents>) -> Self {
        Self { documents, last: RwLock::default(), looking: Arc::default(), changing: Mutex::default() }
    }

    /// A look that counts for a request that arrived at this time. At most one request looks, and its look serves every request that
    /// arrived before it began.
    pub(crate) async fn look(self: &Arc<Self>, arrived: Instant) -> Result<Look, StoreFault> {
        let last = || self.last.read().unwrap_or_else(PoisonError::into_inner).clone();
        let counting = || last().filter(|look| counts(look.began, arrived));
        if let Some(look) = counting() {
            return Ok(look);
        }
        let looking = self.looking.clone().lock_owned().await;
        if let Some(look) = counting() {
            return Ok(look);
        }
        let documents = self.clone();
        // In a task of its own: a client that leaves does not begin another look.
        let looked = tokio::spawn(async move {
            let _looking = looking;
            let began = Instant::now();
            let look = Look { began, versions: Arc::new(documents.documents.versions().await?) };
            *documents.last.write().unwrap_or_else(PoisonError::into_inner) = Some(look.clone());
            Ok(look)
        });
        looked.await.map_err(|error| StoreFault::of_program("look at shared documents", error.to_string()))?
    }

    pub(crate) async fn now(&self) -> Result<Timestamp, StoreFault> {
        self.documents.now().await
    }

    pub(crate) async fn read(&self, name: &str) -> Result<Option<(i64, Vec<u8>)>, StoreFault> {
        self.documents.read(name).await
    }

    /// Makes a document that does not exist yet. Returns whether it did so.
    pub(crate) async fn make(&self, name: &str, content: Vec<u8>) -> Result<bool, StoreFault> {
        self.documents.replace(name, None, content).await
    }

    /// Changes a document, again if another host has replaced it meanwhile.
    pub(crate) async fn change<E: From<StoreFault>>(
        &self,
        name: &str,
        mut change: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>, E> + Send,
    ) -> Result<(), E> {
        let _changing = self.changing.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let (version, content) = self.documents.read(name).await?.unzip();
            let changed = change(content.as_deref())?;
            if self.documents.replace(name, version, changed).await? {
                return Ok(());
            }
        }
        let message = format!("other hosts have changed it {MAX_ATTEMPTS} times meanwhile; try again");
        Err(StoreFault::of_program("change a shared document", message).into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::task::Poll;

    use dispatch::ports::Clock as _;

    use super::*;
    use crate::clock::WallClock;

    /// Returns when no look that began before the call counts any more.
    pub(crate) async fn window() {
        WallClock.sleep(LOOK).await;
    }

    /// The time of the database.
    pub(crate) const TIME: Timestamp = Timestamp::from_millis(7);

    /// Documents in memory, of which several hosts have a view.
    #[derive(Default)]
    pub(crate) struct InMemory {
        documents: Mutex<BTreeMap<String, (i64, Vec<u8>)>>,
        /// How often a host asked for the versions.
        pub(crate) looks: Mutex<usize>,
        pub(crate) is_down: Mutex<bool>,
        /// Another host's changes, each of which happens between the read and the replacement of a change.
        pub(crate) meanwhile: Mutex<Vec<Vec<u8>>>,
    }

    impl InMemory {
        fn check(&self) -> Result<(), StoreFault> {
            if *self.is_down.lock().unwrap() { Err(StoreFault::of_program("ask", "it is down")) } else { Ok(()) }
        }

        fn put(&self, name: &str, content: Vec<u8>) {
            let mut documents = self.documents.lock().unwrap();
            let version = documents.values().map(|(version, _)| *version).max().unwrap_or_default() + 1;
            documents.insert(name.to_owned(), (version, content));
        }

        /// The view of a host.
        pub(crate) fn host(self: &Arc<Self>) -> Arc<SharedDocuments> {
            Arc::new(SharedDocuments::new(self.clone()))
        }

        pub(crate) fn content(&self, name: &str) -> Option<Vec<u8>> {
            Some(self.documents.lock().unwrap().get(name)?.1.clone())
        }
    }

    #[async_trait]
    impl Documents for InMemory {
        async fn versions(&self) -> Result<BTreeMap<String, i64>, StoreFault> {
            *self.looks.lock().unwrap() += 1;
            self.check()?;
            let documents = self.documents.lock().unwrap();
            Ok(documents.iter().map(|(name, (version, _))| (name.clone(), *version)).collect())
        }

        async fn read(&self, name: &str) -> Result<Option<(i64, Vec<u8>)>, StoreFault> {
            self.check()?;
            Ok(self.documents.lock().unwrap().get(name).cloned())
        }

        async fn replace(&self, name: &str, expected: Option<i64>, content: Vec<u8>) -> Result<bool, StoreFault> {
            self.check()?;
            if let Some(other) = self.meanwhile.lock().unwrap().pop() {
                self.put(name, other);
            }
            let found = self.documents.lock().unwrap().get(name).map(|(version, _)| *version);
            if found == expected {
                self.put(name, content);
            }
            Ok(found == expected)
        }

        async fn now(&self) -> Result<Timestamp, StoreFault> {
            self.check().map(|()| TIME)
        }
    }

    #[tokio::test]
    async fn one_look_serves_all_requests_of_its_window() {
        let database = Arc::new(InMemory::default());
        let host = database.host();
        let arrived = Instant::now();
        let looks = futures_of(&host, arrived, 5).await;
        assert!(looks.iter().all(|look| look.began >= arrived));
        assert_eq!(*database.looks.lock().unwrap(), 1);
        let later = arrived + Duration::from_secs(60);
        host.look(later).await.unwrap();
        assert_eq!(*database.looks.lock().unwrap(), 2, "an older look does not count for a later request");
    }

    #[tokio::test]
    async fn look_of_a_client_that_leaves_serves_the_next_one() {
        let database = Arc::new(InMemory::default());
        let host = database.host();
        let arrived = Instant::now();
        let mut leaves = Box::pin(host.look(arrived));
        let begun = std::future::poll_fn(|cx| Poll::Ready(leaves.as_mut().poll(cx).is_pending()));
        assert!(begun.await);
        drop(leaves);
        host.look(arrived).await.unwrap();
        assert_eq!(*database.looks.lock().unwrap(), 1);
    }

    async fn futures_of(host: &Arc<SharedDocuments>, arrived: Instant, number: usize) -> Vec<Look> {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..number {
            let host = host.clone();
            all.spawn(async move { host.look(arrived).await.unwrap() });
        }
        all.join_all().await
    }

    #[tokio::test]
    async fn change_that_another_host_overtook_is_made_again() {
        let database = Arc::new(InMemory::default());
        let append = |text: Option<&[u8]>| Ok::<_, StoreFault>([text.unwrap_or_default(), b"c".as_slice()].concat());
        *database.meanwhile.lock().unwrap() = vec![b"ab".to_vec(), b"a".to_vec()];
        database.host().change("d", append).await.unwrap();
        assert_eq!(database.content("d").unwrap(), b"abc");
        *database.meanwhile.lock().unwrap() = vec![b"x".to_vec(); 1_000];
        let refused = database.host().change("d", append).await.unwrap_err().to_string();
        assert!(refused.contains("try again"), "{refused}");
        assert_eq!(database.content("d").unwrap(), b"x");
    }
}
