//! The stream of pending suspensions of all conversations: live, without replay. It reports when it missed something.

use api::{PendingEventName, json};
use axum::response::sse;
use dispatch::{InboxFollower, Waiting};
use domain::Principal;
use serde::Serialize;

use crate::error::Result;
use crate::events::OpenStream;
use crate::recheck::Events;

/// One stream and its reader.
pub(crate) struct Inbox {
    by: Principal,
    follower: InboxFollower,
    is_ready: bool,
    open: OpenStream,
}

impl Inbox {
    pub(crate) fn new(open: OpenStream, by: Principal, follower: InboxFollower) -> Self {
        Self { by, follower, is_ready: false, open }
    }

    async fn read(&mut self) -> Result<()> {
        let shown = |item| self.open.app().shown(item, &self.by);
        let Some(item) = self.follower.read().await? else { return Ok(()) };
        match item {
            Waiting::Opened(item) => self.push(PendingEventName::Opened, &shown(&item)),
            Waiting::Changed(item) => self.push(PendingEventName::Changed, &shown(&item)),
            Waiting::Closed { row, by, via, at, edited, approvers } => {
                let approvers = api::several(approvers.iter());
                let closed = api::PendingClosed { approvers, ..api::PendingClosed::new(&row, (&by, via), at, edited) };
                self.push(PendingEventName::Closed, &closed)
            }
            Waiting::Missed => self.push(PendingEventName::Reset, &api::Nothing {}),
        }
    }

    fn push<T: Serialize>(&mut self, name: PendingEventName, value: &T) -> Result<()> {
        self.open.push(sse::Event::default().event(name.to_string()), &json::write(value)?);
        Ok(())
    }
}

impl Events for Inbox {
    type Item = sse::Event;

    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.open.pop() {
                return Some(event);
            }
            if !self.is_ready {
                self.is_ready = true;
                self.push(PendingEventName::Ready, &api::Nothing {}).ok()?;
                continue;
            }
            // A stream without news reserves nothing.
            self.follower.ready().await;
            self.open.reserve().await;
            self.read().await.ok()?;
        }
    }
}
