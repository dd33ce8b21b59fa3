//! The client of a request, while it waits for the answer. It can leave. If it has sent a progress token, it gets what the call
//! reports, as notifications before the answer.
//!
//! Reports come no faster than the client reads them, and at a limited pace: a newer one replaces those that were not sent.

use std::pin::{Pin, pin};
use std::sync::Arc;

use dispatch::{Handle, LatestProgress, ProgressFollower};
use domain::{Span, TurnId};
use rmcp::model::{ErrorData, ProgressNotification, ProgressNotificationParam, ProgressToken, ServerNotification};
use rmcp::{Peer, RoleServer};

use crate::calls::{Calls, NoResult};
use crate::pace::Pace;

/// The maximum size of a message, in characters.
const MAX_MESSAGE: usize = 200;

/// The value of a call that is complete.
const TOTAL: f64 = 100.0;

pub(crate) struct Waiter {
    leaves: Pin<Box<dyn Future<Output = ()> + Send>>,
    peer: Peer<RoleServer>,
    reports: Option<Reports>,
}

/// The reports of one call to a client.
pub(crate) struct Reports {
    calls: Calls,
    token: ProgressToken,
    latest: Option<ProgressFollower>,
    /// Received and not sent yet.
    unsent: Option<Arc<LatestProgress>>,
    value: Increasing,
    pace: Pace,
}

impl Waiter {
    /// A client that leaves when the future returns.
    pub(crate) fn new(
        leaves: impl Future<Output = ()> + Send + 'static,
        peer: Peer<RoleServer>,
        reports: Option<Reports>,
    ) -> Self {
        Self { leaves: Box::pin(leaves), peer, reports }
    }

    pub(crate) fn peer(&self) -> &Peer<RoleServer> {
        &self.peer
    }

    /// Reports the progress of this call from now on.
    pub(crate) fn follow(&mut self, turn: TurnId) {
        if let Some(reports) = &mut self.reports {
            reports.latest = Some(reports.handle().follow_progress(turn));
            // For a request that joins the call.
            reports.unsent = reports.handle().latest_progress(turn);
        }
    }

    /// Does work while the client is there.
    ///
    /// # Errors
    /// If it leaves.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, NoResult> {
        let mut work = pin!(work);
        loop {
            let reported = tokio::select! {
                value = &mut work => return Ok(value),
                () = &mut self.leaves => return Err(left()),
                reported = Reports::next(self.reports.as_mut()) => reported,
            };
            self.send(reported).await?;
        }
    }

    /// Reports what was not reported yet: the newest alone if reports come faster than the pace. The call may have ended.
    ///
    /// # Errors
    /// If the client leaves.
    pub(crate) async fn report(&mut self) -> Result<(), NoResult> {
        let mut is_newest = false;
        while !is_newest {
            is_newest = self.reports.as_ref().is_none_or(Reports::is_slow);
            let Some(reported) = self.reports.as_mut().and_then(Reports::take) else { break };
            self.send(reported).await?;
        }
        Ok(())
    }

    /// Sends a report. It is not abandoned for other work: otherwise it could arrive after the answer.
    async fn send(&mut self, reported: ProgressNotificationParam) -> Result<(), NoResult> {
        let Some(reports) = &self.reports else { return Ok(()) };
        let notification = ServerNotification::ProgressNotification(ProgressNotification::new(reported));
        tokio::select! {
            // If it fails, the client leaves, or it has much to read: a report is not worth the place of an answer.
            _ = reports.calls.notify(&self.peer, notification, None) => Ok(()),
            () = &mut self.leaves => Err(left()),
        }
    }
}

impl Reports {
    pub(crate) fn new(calls: &Calls, token: ProgressToken) -> Self {
        let calls = calls.clone();
        Self { calls, token, latest: None, unsent: None, value: Increasing::default(), pace: Pace::new() }
    }

    /// The next report, when it may be sent. The future can be dropped.
    async fn next(reports: Option<&mut Self>) -> ProgressNotificationParam {
        let Some(reports) = reports else { return std::future::pending().await };
        loop {
            if let Some(report) = reports.ready() {
                return report;
            }
            let wait = reports.pace.until_next(reports.handle().now());
            let Some(latest) = &mut reports.latest else { return std::future::pending().await };
            if reports.unsent.is_some() {
                reports.calls.shared.parts.handle.sleep(wait).await;
                reports.skip();
                continue;
            }
            match latest.next().await {
                Some(report) => reports.unsent = Some(report),
                // The call has ended.
                None => return std::future::pending().await,
            }
        }
    }

    /// The next report, if there is one that may be sent now.
    fn ready(&mut self) -> Option<ProgressNotificationParam> {
        if self.pace.until_next(self.handle().now()) > Span::ZERO { None } else { self.take() }
    }

    fn is_slow(&self) -> bool {
        self.pace.is_slow(self.handle().now())
    }

    /// The next report, if there is one: the oldest while the pace allows all, otherwise the newest.
    fn take(&mut self) -> Option<ProgressNotificationParam> {
        let now = self.calls.shared.parts.handle.now();
        loop {
            if self.pace.is_slow(now) {
                self.skip();
            } else if self.unsent.is_none() {
                self.receive();
            }
            let latest = self.unsent.take()?;
            // One without a larger value is left out.
            let Some((progress, total)) = self.value.next(latest.fraction) else { continue };
            self.pace.sent(now);
            let mut report = ProgressNotificationParam::new(self.token.clone(), progress);
            report.total = total;
            report.message = (!latest.message.is_empty()).then(|| text(&latest));
            return Some(report);
        }
    }

    /// Keeps the newest report only.
    fn skip(&mut self) {
        while self.receive() {}
    }

    /// Takes the next report, if there is one.
    fn receive(&mut self) -> bool {
        let next = self.latest.as_mut().and_then(ProgressFollower::try_next);
        let has_next = next.is_some();
        self.unsent = next.or_else(|| self.unsent.take());
        has_next
    }

    fn handle(&self) -> &Handle {
        &self.calls.shared.parts.handle
    }
}

/// The message of a report for people. It is a text of the plugin, so it is escaped.
pub(crate) fn text(progress: &LatestProgress) -> String {
    escape::excerpt(&progress.message, MAX_MESSAGE).into_owned()
}

fn left() -> NoResult {
    ErrorData::internal_error("the request was cancelled", None).into()
}

/// The protocol requires values that increase. A call can report anything.
#[derive(Default)]
struct Increasing {
    last: Option<f64>,
    has_total: bool,
}

impl Increasing {
    /// The value and the total of a report. `None`: there is no larger value.
    fn next(&mut self, fraction: Option<f64>) -> Option<(f64, Option<f64>)> {
        let fraction = fraction.filter(|fraction| fraction.is_finite());
        self.has_total |= fraction.is_some();
        let (least, total) = match self.last {
            _ if !self.has_total => (self.last.unwrap_or_default() + 1.0, None),
            Some(last) => (last + 0.01, Some(TOTAL)),
            None => (0.0, Some(TOTAL)),
        };
        let value = fraction.map_or(least, |fraction| (fraction * TOTAL).max(least));
        if total.is_some_and(|total| value > total) {
            return None;
        }
        self.last = Some(value);
        Some((value, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_increase_whatever_a_call_reports() {
        let mut value = Increasing::default();
        let mut next = |fraction| value.next(fraction);
        assert_eq!([next(None), next(None)], [Some((1.0, None)), Some((2.0, None))]);
        assert_eq!(next(Some(0.5)), Some((50.0, Some(100.0))));
        assert_eq!(next(Some(0.25)), Some((50.01, Some(100.0))), "it went back");
        assert_eq!(next(Some(f64::NAN)), Some((50.019_999_999_999_996, Some(100.0))));
        assert_eq!([next(Some(1.0)), next(Some(1.0)), next(None)], [Some((100.0, Some(100.0))), None, None]);
        assert_eq!(Increasing::default().next(Some(0.0)), Some((0.0, Some(100.0))));
    }
}
