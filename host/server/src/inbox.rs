//! The stream of pending suspensions of all conversations: live, without replay. It reports when it missed something.

use std::sync::Arc;

use api::json;
use axum::response::sse;
use dispatch::{InboxFollower, Waiting};
use domain::Principal;
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::events::OpenStream;
use crate::recheck::Events;

/// One stream and its reader.
pub(crate) struct Inbox {
    app: App,
    by: Principal,
    follower: InboxFollower,
    is_ready: bool,
    _open: OpenStream,
}

impl Inbox {
    pub(crate) fn new(open: OpenStream, by: Principal, follower: InboxFollower) -> Self {
        Self { app: Arc::clone(open.app()), by, follower, is_ready: false, _open: open }
    }

    async fn read(&mut self) -> Result<sse::Event> {
        if !self.is_ready {
            self.is_ready = true;
            return named("pending.ready", &api::Nothing {});
        }
        match self.follower.next().await? {
            Waiting::Opened(item) => named("pending.opened", &self.app.shown(&item, &self.by)),
            Waiting::Changed(item) => named("pending.changed", &self.app.shown(&item, &self.by)),
            Waiting::Closed { row, by, link, at, edited } => {
                named("pending.closed", &api::PendingClosed::new(&row, (&by, link), at, edited))
            }
            Waiting::Missed => named("pending.reset", &api::Nothing {}),
        }
    }
}

impl Events for Inbox {
    async fn next(&mut self) -> Option<sse::Event> {
        self.read().await.ok()
    }
}

fn named<T: Serialize>(name: &str, value: &T) -> Result<sse::Event> {
    Ok(sse::Event::default().event(name).data(json::write(value)?))
}
