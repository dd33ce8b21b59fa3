//! Followers that read for the whole soak: a long conversation, the inbox of an approver, and all events of the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::turns::LONG_CONVERSATION;
use crate::host::Host;
use crate::http::Client;

/// The threads that read.
pub(super) struct Followers {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Followers {
    /// Follows the streams. A stream that ends is opened again after its last event.
    pub(super) fn start(host: &Host) -> Self {
        let over = Arc::<AtomicBool>::default();
        let conversation = format!("/v1/conversations/{LONG_CONVERSATION}/events");
        let streams = [
            (host.admin.clone(), conversation),
            (host.approver.clone(), "/v1/pending/events".to_owned()),
            (host.admin.clone(), "/v1/events".to_owned()),
        ];
        let threads = streams.into_iter().map(|(client, path)| {
            let over = over.clone();
            thread::spawn(move || follow(&client, &path, &over))
        });
        Self { threads: threads.collect(), over }
    }

    /// Lets the streams end with the host.
    pub(super) fn let_go(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Waits for the ends of the streams.
    pub(super) fn join(mut self) {
        for thread in self.threads.drain(..) {
            thread.join().expect("a follower reads until the end");
        }
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.let_go();
    }
}

fn follow(client: &Client, path: &str, over: &AtomicBool) {
    let mut last = None;
    while !over.load(Ordering::Relaxed) {
        let mut events = client.events_after(path, last.as_deref());
        while let Some(event) = events.next_or_end() {
            last = event.id.or(last);
        }
    }
}
