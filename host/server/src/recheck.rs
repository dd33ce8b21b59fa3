//! What ends an event stream besides its reader and the store: the server closes, or the stream's token or session is no
//! longer valid.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::response::sse;
use domain::Principal;
use tokio::time::{Interval, MissedTickBehavior};

use crate::app::App;
use crate::auth::Credential;
use crate::serve::Closing;

/// Ends a stream of a principal.
pub(crate) struct TokenRecheck {
    app: App,
    by: Principal,
    credential: Credential,
    closing: Closing,
    timer: Interval,
}

/// The events of a stream.
pub(crate) trait Events: Send {
    /// The next event. `None` ends the stream; an error is already logged.
    fn next(&mut self) -> impl Future<Output = Option<sse::Event>> + Send;
}

impl TokenRecheck {
    /// Must be called in a runtime.
    pub(crate) fn new(app: &App, (by, credential): (Principal, Credential), closing: Closing) -> Self {
        let mut timer = tokio::time::interval(Duration::from_millis(app.doors.settings.recheck.millis().max(1)));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { app: app.clone(), by, credential, closing, timer }
    }

    /// The stream for HTTP. The client reconnects with the last id that it has.
    pub(crate) fn stream(
        self,
        events: impl Events,
    ) -> impl futures::Stream<Item = std::result::Result<sse::Event, axum::BoxError>> + Send {
        futures::stream::unfold((self, events), |(mut recheck, mut events)| async move {
            let event = recheck.during(events.next()).await??;
            Some((Ok(event), (recheck, events)))
        })
    }

    /// The result of a read, or `None` if the stream ends first. A check does not cancel the read: a read that takes
    /// longer than the time between two checks would begin again without end.
    async fn during<T>(&mut self, read: impl Future<Output = T>) -> Option<T> {
        let mut read = pin!(read);
        loop {
            // The read comes last, so that a stream with a constant flow of events ends too.
            tokio::select! {
                biased;
                () = self.closing.wait() => return None,
                _ = self.timer.tick() => {
                    if !self.credential.stands_for(&self.by, &self.app) {
                        return None;
                    }
                }
                value = &mut read => return Some(value),
            }
        }
    }
}
