//! The stream of pending suspensions of all conversations: live, without replay. It reports when it missed something.

use std::sync::Arc;
use std::time::Duration;

use api::json;
use axum::response::sse;
use dispatch::{InboxFollower, Waiting};
use domain::Principal;
use serde::Serialize;
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::auth::Credential;
use crate::error::Result;
use crate::events::Open;
use crate::serve::Closing;

/// One stream and its reader.
pub(crate) struct Inbox {
    app: App,
    by: Principal,
    credential: Credential,
    follower: InboxFollower,
    closing: Closing,
    is_ready: bool,
    _open: Open,
}

impl Inbox {
    pub(crate) fn new(
        open: Open,
        (by, credential): (Principal, Credential),
        follower: InboxFollower,
        closing: Closing,
    ) -> Self {
        Self { app: Arc::clone(open.app()), by, credential, follower, closing, is_ready: false, _open: open }
    }

    /// The stream for HTTP. It ends when the server closes, the token or session is no longer valid, or the store
    /// cannot be read.
    pub(crate) fn into_events(
        self,
    ) -> impl futures::Stream<Item = std::result::Result<sse::Event, axum::BoxError>> + Send {
        let recheck = Duration::from_millis(self.app.doors.settings.recheck.millis().max(1));
        let mut recheck = tokio::time::interval(recheck);
        recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
        futures::stream::unfold((self, recheck), |(mut stream, mut recheck)| async move {
            loop {
                let event = tokio::select! {
                    biased;
                    () = stream.closing.wait() => return None,
                    _ = recheck.tick() => {
                        if !stream.credential.stands_for(&stream.by, &stream.app) {
                            return None;
                        }
                        continue;
                    }
                    event = Self::next(stream.is_ready, &mut stream.follower, &stream.app, &stream.by) => event,
                };
                stream.is_ready = true;
                // The error is already logged.
                return Some((Ok(event.ok()?), (stream, recheck)));
            }
        })
    }

    /// The next event. Cancel-safe, because the future that it awaits is.
    async fn next(is_ready: bool, follower: &mut InboxFollower, app: &App, by: &Principal) -> Result<sse::Event> {
        if !is_ready {
            return named("pending.ready", &api::Nothing {});
        }
        match follower.next().await? {
            Waiting::Opened(item) => named("pending.opened", &app.shown(&item, by)),
            Waiting::Changed(item) => named("pending.changed", &app.shown(&item, by)),
            Waiting::Closed { row, by, link, at, edited } => {
                named("pending.closed", &api::PendingClosed::new(&row, (&by, link), at, edited))
            }
            Waiting::Missed => named("pending.reset", &api::Nothing {}),
        }
    }
}

fn named<T: Serialize>(name: &str, value: &T) -> Result<sse::Event> {
    Ok(sse::Event::default().event(name).data(json::write(value)?))
}
