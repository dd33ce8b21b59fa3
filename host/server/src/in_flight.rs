//! Counts the requests and event streams that each principal has open, and enforces its quota. It also limits the long
//! requests of each principal and of all principals together, because each occupies a connection. A caller with many
//! open connections therefore locks nobody out, and approvers and admins have a reserve.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use dispatch::Quota;
use domain::{Principal, PrincipalId, principal::Role};
use tokio::sync::Notify;

use crate::doors::LongRequests;
use crate::error::{Error, Result};

/// Principals of different shards never wait for each other.
const SHARDS: usize = 16;

/// The `retry-after` of a refusal, in seconds.
const RETRY_AFTER: u64 = 5;

/// A kind of open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Request,
    /// An event stream, which is a long request.
    Stream,
    /// A request that waits for a turn, or that carries one out: a long request, and counted as a request as well.
    Wait,
}

impl RequestKind {
    /// The limit's name in metrics.
    pub(crate) const fn limit(self) -> &'static str {
        match self {
            Self::Request => "requests",
            Self::Stream => "event_streams",
            Self::Wait => "long_requests",
        }
    }
}

/// Reads of one principal's streams at once. Each needs several times the size of its record until the events are made, which
/// `unread_bytes` does not count.
const READS: usize = 4;

/// The open requests of all principals.
pub(crate) struct InFlight {
    shards: [Mutex<HashMap<PrincipalId, Open>>; SHARDS],
    hasher: RandomState,
    /// The long requests of all principals.
    long: Mutex<Open>,
    max_streams: usize,
    max_long: LongRequests,
    max_unread: usize,
    /// Notifies streams that wait until their principals have read more.
    read: Notify,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Open {
    requests: usize,
    streams: usize,
    waits: usize,
    /// The size of the responses that it has not read yet, in bytes.
    unread: usize,
}

impl Open {
    fn of(&mut self, kind: RequestKind) -> &mut usize {
        match kind {
            RequestKind::Request => &mut self.requests,
            RequestKind::Stream => &mut self.streams,
            RequestKind::Wait => &mut self.waits,
        }
    }

    fn long(&self) -> usize {
        self.streams + self.waits
    }

    fn close(&mut self, kind: RequestKind) {
        let open = self.of(kind);
        *open = open.saturating_sub(1);
    }
}

/// One open request or stream. Dropping it closes it.
pub(crate) struct InFlightRequest {
    in_flight: Arc<InFlight>,
    principal: PrincipalId,
    kind: RequestKind,
    /// Whether it is counted among the long requests of all principals.
    is_long: bool,
}

/// A response, or events of a stream, that the principal has not read yet. It is counted until its bytes are dropped.
pub(crate) struct Unread {
    in_flight: Arc<InFlight>,
    principal: PrincipalId,
    bytes: usize,
    text: String,
}

impl InFlight {
    pub(crate) fn new(max_streams: usize, max_long: LongRequests, max_unread: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            long: Mutex::default(),
            max_streams,
            max_long,
            max_unread,
            read: Notify::new(),
        })
    }

    /// Opens one more request or stream, unless the principal or the host has reached its limit.
    pub(crate) fn open(self: &Arc<Self>, by: &Principal, quota: &Quota, kind: RequestKind) -> Result<InFlightRequest> {
        let principal = by.id.clone();
        self.change(&principal, |open| self.open_one(open, &principal, quota, kind))?;
        // If this is dropped, the count is undone.
        let mut in_flight = InFlightRequest { in_flight: self.clone(), principal, kind, is_long: false };
        if kind != RequestKind::Request {
            self.open_long(by, kind)?;
            in_flight.is_long = true;
        }
        Ok(in_flight)
    }

    fn open_one(&self, open: &mut Open, principal: &PrincipalId, quota: &Quota, kind: RequestKind) -> Result<()> {
        let (max, what) = match kind {
            RequestKind::Request => (quota.requests, "requests in flight, which is its limit (quota.requests)"),
            RequestKind::Stream => {
                (quota.event_streams, "event streams open, which is its limit (quota.event_streams); close one")
            }
            // Its request is counted already.
            RequestKind::Wait => (usize::MAX, ""),
        };
        if *open.of(kind) >= max {
            return Err(Error::busy(format!("{principal} has {max} {what}"), RETRY_AFTER));
        }
        let max = self.max_long.max_per_principal;
        if kind != RequestKind::Request && open.long() >= max {
            let detail = format!(
                "{principal} has {max} event streams and waiting requests open, which is the limit of a principal \
                 (`long_requests_per_principal` in `[door]`); close one, or do not wait"
            );
            return Err(Error::busy(detail, RETRY_AFTER));
        }
        *open.of(kind) += 1;
        Ok(())
    }

    /// Counts a long request among those of all principals.
    fn open_long(&self, by: &Principal, kind: RequestKind) -> Result<()> {
        let LongRequests { max, reserved, .. } = self.max_long;
        let has_reserve = by.roles.has(Role::Approver) || by.roles.has(Role::Admin);
        let max = if has_reserve { max } else { max.saturating_sub(reserved) };
        let mut open = self.long();
        let refused = if kind == RequestKind::Stream && open.streams >= self.max_streams {
            let max = self.max_streams;
            format!("{max} event streams are open, which is the limit of this host (`event_streams` in `[door]`)")
        } else if open.long() >= max {
            let whose = if has_reserve { "" } else { " for principals that are neither approver nor admin" };
            format!(
                "{max} event streams and waiting requests are open, which is the limit of this host{whose} \
                 (`long_requests` in `[door]`)"
            )
        } else {
            *open.of(kind) += 1;
            return Ok(());
        };
        Err(Error::busy(format!("{refused}; try again later"), RETRY_AFTER))
    }

    /// Counts a response of roughly `bytes` bytes. A principal that has read everything else can have one of any size.
    pub(crate) fn unread(self: &Arc<Self>, principal: &PrincipalId, bytes: usize) -> Result<Unread> {
        let max = self.max_unread;
        self.change(principal, |open| {
            if open.unread > 0 && open.unread.saturating_add(bytes) > max {
                let detail = format!(
                    "{principal} has {} bytes of responses that it has not read, and the limit is {max} \
                     (`unread_bytes` in `[door]`); read them first",
                    open.unread
                );
                return Err(Error::busy(detail, RETRY_AFTER));
            }
            open.unread += bytes;
            Ok(())
        })?;
        Ok(Unread { in_flight: self.clone(), principal: principal.clone(), bytes, text: String::new() })
    }

    fn change<T>(&self, principal: &PrincipalId, change: impl FnOnce(&mut Open) -> T) -> T {
        let shard = self.hasher.hash_one(principal) as usize % SHARDS;
        let mut shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let open = shard.entry(principal.clone()).or_default();
        let changed = change(open);
        if *open == Open::default() {
            shard.remove(principal);
        }
        changed
    }

    fn long(&self) -> MutexGuard<'_, Open> {
        self.long.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        if self.is_long {
            self.in_flight.long().close(self.kind);
        }
        self.in_flight.change(&self.principal, |open| open.close(self.kind));
    }
}

impl Unread {
    /// Changes the counted size to `bytes`.
    pub(crate) fn count(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.in_flight.change(&self.principal, |open| open.unread = open.unread.saturating_sub(before) + bytes);
        if bytes < before {
            self.in_flight.read.notify_waiters();
        }
    }

    /// Waits until the principal has read enough to get more, and counts a part of the limit until the next
    /// [`Unread::count`]. So only a few streams of a principal read at once, and what they read cannot exceed the limit by
    /// one record for each open stream.
    pub(crate) async fn reserve(&mut self) {
        let InFlight { read, max_unread, .. } = &*self.in_flight;
        let part = max_unread / READS;
        loop {
            let mut read = pin!(read.notified());
            // Registered before the check, so no change is missed.
            read.as_mut().enable();
            let is_free = self.in_flight.change(&self.principal, |open| {
                let is_free = open.unread == 0 || open.unread.saturating_add(part) <= *max_unread;
                open.unread += if is_free { part } else { 0 };
                is_free
            });
            if is_free {
                self.bytes += part;
                return;
            }
            read.await;
        }
    }

    /// The response. From now on its real size counts.
    pub(crate) fn body(mut self, text: String) -> Bytes {
        self.count(text.len());
        self.text = text;
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.count(0);
    }
}
