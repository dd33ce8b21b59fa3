//! Counts the requests and event streams that each principal has open, and enforces its quota. It also limits the long
//! requests of each principal and of all principals together, because each occupies a connection. A caller with many
//! open connections therefore locks nobody out, and approvers and admins have a reserve. The bytes that a principal is
//! sending, and those that it has not read, are limited as well.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use dispatch::Quota;
use domain::{Principal, PrincipalId, principal::Role};
use futures::future::poll_immediate;
use tokio::sync::Notify;

use crate::error::{Error, Result};
use crate::ports::{LongRequests, ServerSettings};

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

/// Reads of one principal at once. Each needs several times the size of its records until the response or the events are
/// made, which `unread_bytes` does not count.
const READS: usize = 4;

/// A principal with more requests than this leaves the last eighth of what all principals share to others. So a few principals
/// with many requests do not keep out one with few.
const FEW: usize = 8;

/// The open requests of all principals.
pub(crate) struct InFlight {
    shards: [Mutex<HashMap<PrincipalId, Open>>; SHARDS],
    hasher: RandomState,
    /// The requests of all principals that are neither approver nor admin.
    requests: AtomicUsize,
    /// The long requests of all principals.
    long: Mutex<Open>,
    max_requests: usize,
    max_streams: usize,
    max_long: LongRequests,
    max_unread: usize,
    max_bodies: usize,
    /// Notifies reads that wait for others of their principals, or until their principals have read more.
    changed: Notify,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Open {
    requests: usize,
    streams: usize,
    waits: usize,
    /// The size of the bodies that the host has received and not parsed yet, in bytes.
    bodies: usize,
    /// The size of the responses that it has not read yet, in bytes.
    unread: usize,
    /// The responses and events that are being made. Each counts as its part of the limit.
    reads: usize,
}

/// The behaviour of a read while its principal has not read enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfFull {
    Refuse,
    Wait,
    /// It begins. Only other reads delay it.
    Begin,
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
    /// Whether it is counted among those of all principals.
    is_counted: bool,
}

/// A body, as far as it has arrived. Its principal, if it has one, is counted for its bytes until they are dropped.
pub(crate) struct Received {
    in_flight: Arc<InFlight>,
    principal: Option<PrincipalId>,
    bytes: Vec<u8>,
}

/// A response, or events of a stream, that the principal has not read yet. It is counted until its bytes are dropped.
pub(crate) struct Unread {
    in_flight: Arc<InFlight>,
    principal: PrincipalId,
    bytes: usize,
    is_reading: bool,
    text: Bytes,
}

impl InFlight {
    pub(crate) fn new(settings: &ServerSettings) -> Arc<Self> {
        Arc::new(Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            requests: AtomicUsize::new(0),
            long: Mutex::default(),
            max_requests: settings.requests,
            max_streams: settings.event_streams,
            max_long: settings.long_requests,
            max_unread: settings.unread_bytes,
            max_bodies: settings.bodies_bytes,
            changed: Notify::new(),
        })
    }

    /// Opens one more request or stream, unless the principal or the host has reached its limit.
    pub(crate) fn open(self: &Arc<Self>, by: &Principal, quota: &Quota, kind: RequestKind) -> Result<InFlightRequest> {
        let principal = by.id.clone();
        let own = self.change(&principal, |open| self.open_one(open, &principal, quota, kind))?;
        // If this is dropped, the count is undone.
        let mut in_flight = InFlightRequest { in_flight: self.clone(), principal, kind, is_counted: false };
        let has_reserve = by.roles.has(Role::Approver) || by.roles.has(Role::Admin);
        match kind {
            RequestKind::Request if has_reserve => return Ok(in_flight),
            RequestKind::Request => self.open_request(own)?,
            RequestKind::Stream | RequestKind::Wait => self.open_long(own, has_reserve, kind)?,
        }
        in_flight.is_counted = true;
        Ok(in_flight)
    }

    /// Counts one more of a principal. Returns how many it has of those that share a limit.
    fn open_one(&self, open: &mut Open, principal: &PrincipalId, quota: &Quota, kind: RequestKind) -> Result<usize> {
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
                 (`long_requests_per_principal` in `[server]`); close one, or do not wait"
            );
            return Err(Error::busy(detail, RETRY_AFTER));
        }
        *open.of(kind) += 1;
        Ok(if kind == RequestKind::Request { open.requests } else { open.long() })
    }

    /// Counts a request of a principal without a reserve.
    fn open_request(&self, own: usize) -> Result<()> {
        let max = shared(self.max_requests, own);
        let more = |open: usize| (open < max).then_some(open + 1);
        self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map(drop).map_err(|_| {
            let detail = format!(
                "{max} requests are in flight, which is the limit of this host for principals that are neither approver nor \
                 admin{} (seven eighths of `connections` in `[server]`); try again later",
                with_many(own)
            );
            Error::busy(detail, RETRY_AFTER)
        })
    }

    /// Counts a long request among those of all principals.
    fn open_long(&self, own: usize, has_reserve: bool, kind: RequestKind) -> Result<()> {
        let LongRequests { max, reserved, .. } = self.max_long;
        // The share of principals with many is that of those without a reserve.
        let own = if has_reserve { 0 } else { own };
        let max = shared(if has_reserve { max } else { max.saturating_sub(reserved) }, own);
        let mut open = self.long();
        let refused = if kind == RequestKind::Stream && open.streams >= shared(self.max_streams, own) {
            let (max, many) = (shared(self.max_streams, own), with_many(own));
            format!(
                "{max} event streams are open, which is the limit of this host{many} (`event_streams` in `[server]`)"
            )
        } else if open.long() >= max {
            let whose = if has_reserve { "" } else { " for principals that are neither approver nor admin" };
            format!(
                "{max} event streams and waiting requests are open, which is the limit of this host{whose}{} \
                 (`long_requests` in `[server]`)",
                with_many(own)
            )
        } else {
            *open.of(kind) += 1;
            return Ok(());
        };
        Err(Error::busy(format!("{refused}; try again later"), RETRY_AFTER))
    }

    /// A body of which nothing has arrived yet.
    pub(crate) fn received(self: &Arc<Self>, principal: Option<PrincipalId>) -> Received {
        Received { in_flight: self.clone(), principal, bytes: Vec::new() }
    }

    /// Counts a response of roughly `bytes` bytes. A principal that has read everything else can have one of any size.
    pub(crate) fn unread(self: &Arc<Self>, principal: &PrincipalId, bytes: usize) -> Result<Unread> {
        let mut unread = self.uncounted(principal);
        unread.charge(bytes)?;
        Ok(unread)
    }

    /// A response that is not counted before it is written.
    pub(crate) fn uncounted(self: &Arc<Self>, principal: &PrincipalId) -> Unread {
        let (in_flight, principal) = (self.clone(), principal.clone());
        Unread { in_flight, principal, bytes: 0, is_reading: false, text: Bytes::new() }
    }

    /// Begins a read, which ends with the next count of its bytes. Waits while the principal has several.
    pub(crate) async fn read(self: &Arc<Self>, principal: &PrincipalId) -> Result<Unread> {
        let mut unread = self.uncounted(principal);
        if unread.begin(IfFull::Refuse).await {
            return Ok(unread);
        }
        let bytes = self.change(principal, |open| open.unread);
        Err(self.too_many(principal, bytes))
    }

    /// As [`InFlight::read`], for a request that must be carried out although the principal has not read enough.
    pub(crate) async fn read_if_full(self: &Arc<Self>, principal: &PrincipalId) -> Unread {
        let mut unread = self.uncounted(principal);
        unread.begin(IfFull::Begin).await;
        unread
    }

    fn too_many(&self, principal: &PrincipalId, bytes: usize) -> Error {
        let detail = format!(
            "{principal} has {bytes} bytes of responses that it has not read, and the limit is {} (`unread_bytes` in \
             `[server]`); read them first",
            self.max_unread
        );
        Error::busy(detail, RETRY_AFTER)
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

/// The part of a shared limit that a principal with this many requests can use.
fn shared(max: usize, own: usize) -> usize {
    if own > FEW { max - max / 8 } else { max }
}

/// The end of the words for such a limit.
fn with_many(own: usize) -> &'static str {
    if own > FEW { ", for a principal with more than 8 of its own" } else { "" }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        match self.kind {
            _ if !self.is_counted => {}
            RequestKind::Request => drop(self.in_flight.requests.fetch_sub(1, Ordering::Relaxed)),
            RequestKind::Stream | RequestKind::Wait => self.in_flight.long().close(self.kind),
        }
        self.in_flight.change(&self.principal, |open| open.close(self.kind));
    }
}

impl Received {
    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds bytes, unless the principal is sending other bodies and all together exceed the limit.
    pub(crate) fn extend(&mut self, more: &[u8]) -> Result<()> {
        if let Some(principal) = &self.principal {
            let (own, max) = (self.bytes.len(), self.in_flight.max_bodies);
            let counted = self.in_flight.change(principal, |open| {
                let (others, all) = (open.bodies.saturating_sub(own), open.bodies.saturating_add(more.len()));
                let fits = others == 0 || all <= max;
                open.bodies = if fits { all } else { open.bodies };
                if fits { Ok(()) } else { Err(others) }
            });
            counted.map_err(|others| {
                let detail = format!(
                    "{principal} is sending {others} bytes of other bodies, and the limit of all together is {max} \
                     (`bodies_bytes` in `[server]`); send fewer at once"
                );
                Error::busy(detail, RETRY_AFTER)
            })?;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Received> for Bytes {
    fn from(received: Received) -> Self {
        Self::from_owner(received)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let Some(principal) = &self.principal {
            self.in_flight.change(principal, |open| open.bodies = open.bodies.saturating_sub(self.bytes.len()));
        }
    }
}

impl Unread {
    /// Changes the counted size to `bytes`. Ends a read.
    pub(crate) fn count(&mut self, bytes: usize) {
        // Nothing exceeds this limit.
        let _ = self.set(bytes, usize::MAX);
    }

    /// As [`Unread::count`], unless the principal has too many other bytes unread.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<()> {
        let set = self.set(bytes, self.in_flight.max_unread);
        set.map_err(|others| self.in_flight.too_many(&self.principal, others))
    }

    /// Changes the count, unless there are other bytes and all together exceed the limit. The error is the others.
    fn set(&mut self, bytes: usize, max: usize) -> std::result::Result<(), usize> {
        let (before, was_reading) = (self.bytes, self.is_reading);
        self.in_flight.change(&self.principal, |open| {
            let others = open.unread.saturating_sub(before);
            if others > 0 && others.saturating_add(bytes) > max {
                return Err(others);
            }
            open.unread = others.saturating_add(bytes);
            open.reads = open.reads.saturating_sub(usize::from(was_reading));
            Ok(())
        })?;
        (self.bytes, self.is_reading) = (bytes, false);
        if bytes < before || was_reading {
            self.in_flight.changed.notify_waiters();
        }
        Ok(())
    }

    /// Waits until the principal has read enough to get more. Begins a read, which ends with the next [`Unread::count`]. So
    /// only a few reads of a principal are made at once, and they cannot exceed the limit by more than one record each.
    pub(crate) async fn reserve(&mut self) {
        self.begin(IfFull::Wait).await;
    }

    /// As [`Unread::reserve`]. Drops what is kept for the read if the read has to wait.
    pub(crate) async fn reserve_with<T>(&mut self, kept: T) -> Option<T> {
        let mut begun = pin!(self.begin(IfFull::Wait));
        if poll_immediate(&mut begun).await.is_some() {
            return Some(kept);
        }
        drop(kept);
        begun.await;
        None
    }

    /// Begins a read when few enough others of the principal are made. Returns false if it is refused instead.
    async fn begin(&mut self, if_full: IfFull) -> bool {
        let InFlight { changed, max_unread, .. } = &*self.in_flight;
        let part = max_unread / READS;
        loop {
            let mut changed = pin!(changed.notified());
            // Registered before the check, so no change is missed.
            changed.as_mut().enable();
            let begun = self.in_flight.change(&self.principal, |open| {
                let all = (open.reads + 1).saturating_mul(part).saturating_add(open.unread);
                if open.reads < READS && (all <= *max_unread || if_full == IfFull::Begin) {
                    open.reads += 1;
                    return Some(true);
                }
                // Other reads end by themselves. Unread bytes stay until the principal reads them.
                let is_full = open.unread > 0 && open.unread.saturating_add(part) > *max_unread;
                (is_full && if_full == IfFull::Refuse).then_some(false)
            });
            if let Some(begun) = begun {
                self.is_reading = begun;
                return begun;
            }
            changed.await;
        }
    }

    /// The response. From now on its real size counts.
    pub(crate) fn body(mut self, text: impl Into<Bytes>) -> Bytes {
        self.text = text.into();
        self.count(self.text.len());
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.count(0);
    }
}
