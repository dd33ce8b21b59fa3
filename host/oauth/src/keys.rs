//! Which keys of the issuer are known, and when they are fetched again. Anybody can send tokens with made-up key ids, so the
//! number of requests to the issuer does not depend on the number of tokens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{Span, Timestamp};
use tokio::sync::Semaphore;
use url::Url;

use crate::discovery;
use crate::fetch::{self, Fetch, FetchError};
use crate::jwk::{Key, KeySet};
use crate::token::Algorithm;

/// After this time, keys are fetched again.
pub const MAX_AGE: Span = Span::from_secs(10 * 60);

/// How long keys are used if the issuer cannot be reached.
pub const MAX_KEPT: Span = Span::from_secs(24 * 60 * 60);

/// The pause after keys were fetched. A key that the issuer begins to use is known after this time.
pub const PAUSE: Span = Span::from_secs(30);

/// The time from the start of an attempt that fails to the next. It is longer than an attempt takes.
const PAUSE_AFTER_FAILURE: Span = Span::from_secs(15);

/// The time of one attempt: three places of discovery, and the keys. A request waits at most this long.
const TIMEOUT: Duration = fetch::TIMEOUT.saturating_mul(4);

/// Requests that wait for the issuer at once. Each occupies a connection, and anybody can send a token with a made-up key id.
const MAX_WAITING: usize = 16;

/// No keys of the issuer are known, or too many requests wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoKeys;

/// The keys of an issuer.
pub(crate) struct Keys {
    issuer: String,
    /// The URL of the keys, if the operator names it.
    url: Option<Url>,
    fetch: Arc<dyn Fetch>,
    known: Mutex<Known>,
    /// Held during an attempt.
    fetching: Arc<tokio::sync::Mutex<()>>,
    /// A permit for each request that waits for an attempt.
    waiting: Semaphore,
}

#[derive(Default, Clone)]
struct Known {
    keys: Option<(Arc<KeySet>, Timestamp)>,
    /// When the last attempt began, and the time until the next.
    last: Option<(Timestamp, Span)>,
    attempts: u64,
}

impl Known {
    /// The keys that may be used, and whether they must be fetched again.
    fn usable(&self, now: Timestamp) -> Option<(&Arc<KeySet>, bool)> {
        let (keys, since) = self.keys.as_ref()?;
        // The clock may have been set back.
        let is_within = |age: Span| *since <= now && now < *since + age;
        is_within(MAX_KEPT).then_some((keys, !is_within(MAX_AGE)))
    }

    fn may_fetch(&self, now: Timestamp) -> bool {
        // A request may be a little older than the attempt. If it is much older, the clock has been set back.
        self.last.is_none_or(|(at, pause)| now >= at + pause || now + pause < at)
    }
}

impl Keys {
    pub(crate) fn new(issuer: String, url: Option<Url>, fetch: Arc<dyn Fetch>) -> Arc<Self> {
        let waiting = Semaphore::new(MAX_WAITING);
        Arc::new(Self { issuer, url, fetch, known: Mutex::default(), fetching: Arc::default(), waiting })
    }

    /// The key of this id for this algorithm. `None`: the issuer has no such key.
    pub(crate) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
        now: Timestamp,
    ) -> Result<Option<Key>, NoKeys> {
        let known = self.known().clone();
        let found = known.usable(now).and_then(|(keys, is_old)| Some((keys.find(id, algorithm)?.clone(), is_old)));
        let may_fetch = known.may_fetch(now);
        let key = match found {
            // One request fetches old keys again. The others go on with what is known.
            Some((key, is_old)) if !is_old || !may_fetch || self.fetching.try_lock().is_err() => return Ok(Some(key)),
            found => found.map(|(key, _)| key),
        };
        if may_fetch {
            let Ok(_waiting) = self.waiting.try_acquire() else { return key.map(Some).ok_or(NoKeys) };
            self.refresh(known.attempts, now).await;
        }
        let known = self.known().clone();
        let (keys, _) = known.usable(now).ok_or(NoKeys)?;
        Ok(keys.find(id, algorithm).cloned())
    }

    /// Fetches the keys, unless there were more attempts meanwhile. Goes on if the caller leaves: otherwise clients that disconnect could
    /// prevent it forever.
    async fn refresh(self: &Arc<Self>, attempts: u64, now: Timestamp) {
        let fetching = self.fetching.clone().lock_owned().await;
        if self.known().attempts != attempts {
            return;
        }
        let keys = self.clone();
        let attempt = tokio::spawn(async move {
            let _fetching = fetching;
            let fetched = tokio::time::timeout(TIMEOUT, keys.fetched()).await;
            let fetched = fetched.unwrap_or_else(|_| Err(FetchError("the issuer does not answer in time".into())));
            keys.keep(fetched, now);
        });
        if attempt.await.is_err() {
            tracing::error!("an attempt to fetch the keys of the issuer failed");
        }
    }

    async fn fetched(&self) -> Result<KeySet, FetchError> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => discovery::key_url(self.fetch.as_ref(), &self.issuer).await?,
        };
        KeySet::read(&self.fetch.get(&url).await?).map_err(|error| FetchError(format!("{url}: {error}")))
    }

    fn keep(&self, fetched: Result<KeySet, FetchError>, now: Timestamp) {
        let mut known = self.known();
        known.attempts += 1;
        match fetched {
            Ok(keys) => {
                known.keys = Some((Arc::new(keys), now));
                known.last = Some((now, PAUSE));
            }
            Err(error) => {
                tracing::warn!(issuer = self.issuer, %error, "the keys of the issuer cannot be fetched");
                known.last = Some((now, PAUSE_AFTER_FAILURE));
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
