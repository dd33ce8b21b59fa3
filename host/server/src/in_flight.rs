//! Counts the requests and event streams that each principal has open, and enforces its quota. It also limits the
//! event streams of all principals together. A caller with many open connections therefore locks nobody out.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dispatch::Quota;
use domain::PrincipalId;

use crate::error::{Error, Result};

/// Principals of different shards never wait for each other.
const SHARDS: usize = 16;

/// The `retry-after` of a refusal, in seconds.
const RETRY_AFTER: u64 = 5;

/// A kind of open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Stream,
}

/// The open requests of all principals.
pub(crate) struct InFlight {
    shards: [Mutex<HashMap<PrincipalId, Open>>; SHARDS],
    hasher: RandomState,
    streams: AtomicUsize,
    max_streams: usize,
}

#[derive(Default)]
struct Open {
    requests: usize,
    streams: usize,
}

impl Open {
    fn of(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Request => &mut self.requests,
            Kind::Stream => &mut self.streams,
        }
    }
}

/// One open request or stream. Dropping it closes it.
pub(crate) struct InFlightRequest {
    in_flight: Arc<InFlight>,
    principal: PrincipalId,
    kind: Kind,
}

impl InFlight {
    pub(crate) fn new(max_streams: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            streams: AtomicUsize::new(0),
            max_streams,
        })
    }

    /// Opens one more request or stream, unless the principal or the host has reached its limit.
    pub(crate) fn open(
        self: &Arc<Self>,
        principal: &PrincipalId,
        quota: &Quota,
        kind: Kind,
    ) -> Result<InFlightRequest> {
        let (max, what) = match kind {
            Kind::Request => (quota.requests, "requests in flight, which is its limit (quota.requests)"),
            Kind::Stream => {
                (quota.event_streams, "event streams open, which is its limit (quota.event_streams); close one")
            }
        };
        self.change(principal, |open| {
            let open = open.of(kind);
            let fits = *open < max;
            *open += usize::from(fits);
            fits
        })
        .then_some(())
        .ok_or_else(|| Error::busy(format!("{principal} has {max} {what}"), RETRY_AFTER))?;
        // If this is dropped, the count is undone.
        let in_flight = InFlightRequest { in_flight: self.clone(), principal: principal.clone(), kind };
        if kind == Kind::Stream && self.streams.fetch_add(1, Ordering::AcqRel) >= self.max_streams {
            let max = self.max_streams;
            return Err(Error::busy(
                format!(
                    "{max} event streams are open, which is the limit of this host (`event_streams` in `[door]`); try again later"
                ),
                RETRY_AFTER,
            ));
        }
        Ok(in_flight)
    }

    fn change<T>(&self, principal: &PrincipalId, change: impl FnOnce(&mut Open) -> T) -> T {
        let shard = self.hasher.hash_one(principal) as usize % SHARDS;
        let mut shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let open = shard.entry(principal.clone()).or_default();
        let changed = change(open);
        if open.requests == 0 && open.streams == 0 {
            shard.remove(principal);
        }
        changed
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        if self.kind == Kind::Stream {
            self.in_flight.streams.fetch_sub(1, Ordering::AcqRel);
        }
        let kind = self.kind;
        self.in_flight.change(&self.principal, |open| {
            let open = open.of(kind);
            *open = open.saturating_sub(1);
        });
    }
}
