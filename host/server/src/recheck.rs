//! Ends an event stream when the server closes, or when the stream's token or session is no longer valid.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use domain::Principal;
use tokio::time::{Interval, MissedTickBehavior};

use crate::app::App;
use crate::auth::Credential;
use crate::serve::Closing;

/// Ends one event stream of a principal.
pub(crate) struct TokenRecheck {
    app: App,
    by: Principal,
    credential: Credential,
    closing: Closing,
    timer: Interval,
}

pub(crate) trait Events: Send {
    type Item: Send;

    /// Returns the next event. `None` ends the stream. The source has already logged any error.
    fn next(&mut self) -> impl Future<Output = Option<Self::Item>> + Send;
}

impl TokenRecheck {
    /// The caller must be in a Tokio runtime.
    pub(crate) fn new(app: &App, (by, credential): (Principal, Credential), closing: Closing) -> Self {
        let mut timer = tokio::time::interval(Duration::from_millis(app.ports.settings.recheck.millis().max(1)));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { app: app.clone(), by, credential, closing, timer }
    }

    /// Converts the events to a stream for HTTP. After the stream ends, the client reconnects with its last event id.
    pub(crate) fn stream<E: Events>(
        self,
        events: E,
    ) -> impl futures::Stream<Item = std::result::Result<E::Item, axum::BoxError>> + Send {
        futures::stream::unfold((self, events), |(mut recheck, mut events)| async move {
            let event = recheck.during(events.next()).await??;
            Some((Ok(event), (recheck, events)))
        })
    }

    /// Returns the result of a read, or `None` if the stream ends first. A check does not cancel the read. Otherwise a
    /// read that takes longer than the interval between checks would never complete.
    pub(crate) async fn during<T>(&mut self, read: impl Future<Output = T>) -> Option<T> {
        let mut read = pin!(read);
        loop {
            // The read comes last, so that a stream with a constant flow of events also ends.
            tokio::select! {
                biased;
                () = self.closing.wait() => return None,
                _ = self.timer.tick() => {
                    self.app.refresh().await;
                    if !self.credential.authenticates(&self.by, &self.app) {
                        return None;
                    }
                }
                value = &mut read => return Some(value),
            }
        }
    }
}
