//! The table `[door]`: how long the HTTP door waits for its clients, and how many it lets in.

use std::num::{NonZeroU64, NonZeroUsize};

use domain::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use server::{Connections, Settings};

/// Bounds on connections and on what clients keep waiting.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DoorTable {
    /// Connections at once. When one more comes, the one that has waited longest for its client is closed. Never more than
    /// half of the files that the system lets the host open. Default: 1024.
    pub connections: Option<NonZeroUsize>,
    /// How long a client may take until the head of a request has arrived, from the opening of its connection or from the
    /// end of the answer before, in milliseconds. So it is also how long an unused connection is kept. Default: 10000.
    pub head_ms: Option<NonZeroU64>,
    /// The most bytes of a request's head. Default: 32768, 32 KiB.
    pub head_bytes: Option<NonZeroUsize>,
    /// How long the body of a request may take to arrive, in milliseconds; one second more for each 16 KiB of it that has.
    /// Default: 30000.
    pub body_ms: Option<NonZeroU64>,
    /// How long a client may take to read some of its answer, in milliseconds. Default: 30000.
    pub stall_ms: Option<NonZeroU64>,
    /// Event streams of all principals together. Default: 1024.
    pub event_streams: Option<NonZeroUsize>,
    /// How often an open event stream looks whether its token still counts, in milliseconds. Default: 2000.
    pub recheck_ms: Option<NonZeroU64>,
}

impl DoorTable {
    /// The bounds on connections.
    #[must_use]
    pub fn connections(&self) -> Connections {
        let others = Connections::default();
        Connections {
            most: self.connections.map_or(others.most, NonZeroUsize::get),
            head: span(self.head_ms, others.head),
            head_bytes: self.head_bytes.map_or(others.head_bytes, NonZeroUsize::get),
            stall: span(self.stall_ms, others.stall),
        }
    }

    /// The server's settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let others = Settings::default();
        Settings {
            body: span(self.body_ms, others.body),
            event_streams: self.event_streams.map_or(others.event_streams, NonZeroUsize::get),
            recheck: span(self.recheck_ms, others.recheck),
            ..others
        }
    }
}

fn span(own: Option<NonZeroU64>, other: Span) -> Span {
    own.map_or(other, |own| Span::from_millis(own.get()))
}
