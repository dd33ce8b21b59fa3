//! When a delivery is retried, and when the host gives it up.

use dispatch::ports::{Attempt, DeliveryRow, DeliveryState};
use domain::{Span, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::send::Reply;

/// With the pauses below, the attempts at one delivery take about two and a half hours.
const MAX_ATTEMPTS: u32 = 12;

/// The pause after the first attempt. It doubles with each attempt.
const FIRST_PAUSE: Span = Span::from_secs(5);

/// The maximum pause without jitter. A receiver cannot ask for a longer one.
const MAX_PAUSE: Span = Span::from_secs(60 * 60);

/// With this status a receiver refuses further attempts.
const GONE: u16 = 410;

/// The row after an attempt: it ended at this time with a reply or an error.
pub(crate) fn after(row: &DeliveryRow, reply: Result<Reply, String>, now: Timestamp) -> DeliveryRow {
    let attempts = row.attempts.saturating_add(1);
    let (state, status, error) = match reply {
        Ok(Reply { status, .. }) if (200..300).contains(&status) => (DeliveryState::Delivered, Some(status), None),
        Ok(Reply { status: GONE, .. }) => {
            (DeliveryState::Failed, Some(GONE), Some("the receiver refuses further attempts (410)".to_owned()))
        }
        Ok(Reply { status, .. }) if (300..400).contains(&status) => {
            (again(row, attempts, None, now), Some(status), Some("redirects are not followed".to_owned()))
        }
        Ok(Reply { status, retry_after }) => (again(row, attempts, retry_after, now), Some(status), None),
        Err(error) => (again(row, attempts, None, now), None, Some(error)),
    };
    DeliveryRow { state, attempts, last: Some(Attempt { at: now, status, error }), ..row.clone() }
}

/// The row of a delivery that the host gives up, with the reason.
pub(crate) fn given_up(row: &DeliveryRow, why: &str, now: Timestamp) -> DeliveryRow {
    let last = Some(Attempt { at: now, status: None, error: Some(why.to_owned()) });
    DeliveryRow { state: DeliveryState::Failed, last, ..row.clone() }
}

fn again(row: &DeliveryRow, attempts: u32, asked: Option<Span>, now: Timestamp) -> DeliveryState {
    if attempts >= MAX_ATTEMPTS {
        return DeliveryState::Failed;
    }
    let pause = pause(row, attempts).max(asked.map_or(Span::from_millis(0), |asked| asked.min(MAX_PAUSE)));
    DeliveryState::Pending { next: now + pause }
}

/// The pause after this many attempts. It doubles each time and grows by up to a quarter, so that deliveries that failed together
/// are not retried together. The jitter is a hash of the delivery: it looks random and can be repeated.
fn pause(row: &DeliveryRow, attempts: u32) -> Span {
    let doubled = FIRST_PAUSE.millis().saturating_mul(1 << attempts.saturating_sub(1).min(20));
    let pause = doubled.min(MAX_PAUSE.millis());
    let digest = Sha256::digest(format!("{} {} {attempts}", row.webhook, row.message_id()));
    let spread = digest.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    Span::from_millis(pause + spread % (pause / 4))
}

#[cfg(test)]
mod tests {
    use dispatch::ports::{Occasion, Report};
    use domain::SuspensionId;

    use super::*;

    fn row(attempts: u32) -> DeliveryRow {
        DeliveryRow {
            report: Report::Suspension(SuspensionId::from_bits(7), Occasion::Opened),
            webhook: "pager".into(),
            at: Timestamp::from_millis(0),
            state: DeliveryState::Pending { next: Timestamp::from_millis(0) },
            attempts,
            last: None,
        }
    }

    fn reply(status: u16, retry_after: Option<u64>) -> Result<Reply, String> {
        Ok(Reply { status, retry_after: retry_after.map(Span::from_secs) })
    }

    #[test]
    fn pauses_double_to_an_hour_until_delivery_is_given_up() {
        let now = Timestamp::from_millis(1_000_000);
        let pauses = (0..MAX_ATTEMPTS).map(|attempts| {
            let row = after(&row(attempts), reply(500, None), now);
            assert_eq!(row.attempts, attempts + 1);
            row.next().map(|next| (next - now).millis())
        });
        let pauses: Vec<_> = pauses.collect();
        let doubled = [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600].map(|seconds| seconds * 1_000);
        for (pause, doubled) in pauses.iter().zip(doubled) {
            assert!(
                pause.is_some_and(|pause| (doubled..doubled + doubled / 4).contains(&pause)),
                "{pause:?} {doubled}"
            );
        }
        assert_eq!((pauses.len(), pauses.last()), (12, Some(&None)), "the twelfth was the last");
        let of_another =
            DeliveryRow { report: Report::Suspension(SuspensionId::from_bits(8), Occasion::Opened), ..row(3) };
        assert_ne!(
            pause(&row(3), 3),
            pause(&of_another, 3),
            "deliveries that failed together are not retried together"
        );
    }

    #[test]
    fn reply_decides_the_next_attempt() {
        let now = Timestamp::from_millis(9);
        let pending = |row: &DeliveryRow| row.next().map(|next| (next - now).millis() / 1_000);
        // (reply, state, fewest and most whole seconds until the next attempt)
        for (came, state, least, most) in [
            (reply(200, None), "delivered", None, None),
            (reply(204, Some(60)), "delivered", None, None),
            (reply(410, None), "failed", None, None),
            (reply(302, None), "pending", Some(5), Some(6)),
            (reply(400, None), "pending", Some(5), Some(6)),
            (reply(503, Some(0)), "pending", Some(5), Some(6)),
            (reply(429, Some(120)), "pending", Some(120), Some(120)),
            (reply(503, Some(1_000_000)), "pending", Some(3_600), Some(3_600)),
            (Err("no route".into()), "pending", Some(5), Some(6)),
        ] {
            let row = after(&row(0), came.clone(), now);
            assert_eq!(row.state.as_str(), state, "{came:?}");
            assert!(pending(&row) >= least && pending(&row) <= most, "{came:?}: {row:?}");
            let last = row.last.unwrap();
            assert_eq!(last.status, came.as_ref().ok().map(|reply| reply.status));
            assert_eq!(last.error.is_some(), came.map_or(true, |reply| matches!(reply.status, 302 | 410)));
        }
    }
}
