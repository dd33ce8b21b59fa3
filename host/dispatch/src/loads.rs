//! Loads of turns for requests that write. A turn can have many megabytes. Few are loaded at once for one principal, so that
//! its requests leave the disk and the memory to others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::PrincipalId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest number of loads at the same time for one principal. Others wait.
const MAX_LOADS: usize = 4;

#[derive(Default)]
pub(crate) struct Loads(Mutex<HashMap<PrincipalId, Weak<Semaphore>>>);

impl Loads {
    /// Waits until this principal may load one more turn.
    pub(crate) async fn permit(&self, of: &PrincipalId) -> OwnedSemaphorePermit {
        #[expect(clippy::expect_used, reason = "nobody closes it")]
        self.of(of).acquire_owned().await.expect("it is open")
    }

    fn of(&self, principal: &PrincipalId) -> Arc<Semaphore> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = all.get(principal).and_then(Weak::upgrade) {
            return permits;
        }
        all.retain(|_, permits| permits.strong_count() > 0);
        let permits = Arc::new(Semaphore::new(MAX_LOADS));
        all.insert(principal.clone(), Arc::downgrade(&permits));
        permits
    }
}
