//! The state that all routes share.

use std::sync::Arc;

use axum::body::Bytes;
use dispatch::SuspensionView;
use domain::Principal;

use crate::error::Result;
use crate::in_flight::{InFlight, InFlightRequest, RequestKind, Unread};
use crate::login_throttle::LoginThrottle;
use crate::metrics::Meters;
use crate::ports::Ports;

pub(crate) type App = Arc<State>;

/// The state of a router.
pub(crate) struct State {
    pub(crate) ports: Ports,
    pub(crate) meters: Arc<Meters>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) login_throttle: LoginThrottle,
    /// The OpenAPI document, as a JSON text. All responses share its bytes.
    pub(crate) document: Bytes,
}

impl State {
    /// Learns of new and revoked tokens, and of revoked sessions.
    pub(crate) async fn refresh(&self) {
        tokio::join!(self.ports.auth.refresh(), self.ports.sessions.revoked.refresh());
    }

    /// Counts one more request or stream of a principal, unless it has reached its quota.
    pub(crate) fn begin_request(&self, principal: &Principal, kind: RequestKind) -> Result<InFlightRequest> {
        let begun = self.in_flight.open(principal, &self.ports.handle.quota(&principal.id), kind);
        begun.inspect_err(|_| self.meters.refused(kind.limit()))
    }

    /// Counts a response of roughly `bytes` bytes that the principal has yet to read, unless too many are unread.
    pub(crate) fn unread(&self, principal: &Principal, bytes: usize) -> Result<Unread> {
        self.counted(self.in_flight.unread(&principal.id, bytes))
    }

    /// Begins a read, before anything is loaded, unless the principal has too many bytes unread. Few of a principal are
    /// made at once.
    pub(crate) async fn read(&self, principal: &Principal) -> Result<Unread> {
        self.counted(self.in_flight.read(&principal.id).await)
    }

    /// Counts the real size of a response before it is written, unless the principal has too many other bytes unread.
    pub(crate) fn charge(&self, unread: &mut Unread, bytes: usize) -> Result<()> {
        self.counted(unread.charge(bytes))
    }

    /// A small response. It is counted and never refused, because it may report what the request has changed.
    pub(crate) fn small(&self, principal: &Principal) -> Unread {
        self.in_flight.uncounted(&principal.id)
    }

    fn counted<T>(&self, charged: Result<T>) -> Result<T> {
        charged.inspect_err(|_| self.meters.refused("unread_bytes"))
    }

    /// A suspension for this principal.
    pub(crate) fn shown(&self, item: &SuspensionView, by: &Principal) -> api::Suspension {
        api::Suspension::for_principal(item, by, self.ports.handle.own_calls())
    }
}
