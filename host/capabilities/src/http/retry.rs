//! Servers that refuse a request for now: 429, or 503 for a request that may be repeated. If the grant says so, a durable
//! call waits as long as the server asks for, and the request is sent again.
//!
//! The refusal is on disk before the call waits. So a run after a kill waits until the same time, and sends the request with
//! the same `Idempotency-Key`.

use std::time::SystemTime;

use domain::journal::RefusedForNow;
use domain::{Span, Timestamp};
use http::header::{HeaderMap, RETRY_AFTER};

/// How often one request is sent again at most. So a server cannot keep a call forever with short waits.
const MAX_REPEATS: u32 = 32;

/// The minimum wait.
const MIN_WAIT: Span = Span::from_secs(1);

/// The maximum wait for a server that does not say how long. Such waits begin with [`MIN_WAIT`], and each is twice as long as
/// the one before it.
const MAX_UNSAID: Span = Span::from_secs(60);

/// The refusals of one request so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Refusals {
    /// The number of the first entry in the journal. The `Idempotency-Key` has it.
    pub(super) number: Option<u32>,
    count: u32,
    /// The sum of the waits.
    waited: Span,
    /// The refusal that leaves an earlier sending in doubt.
    pub(super) in_doubt: Option<u32>,
}

impl Refusals {
    /// Adds the refusal in the entry `last` of a request whose first entry is `first`.
    pub(super) fn add(&mut self, first: u32, last: u32, refused: RefusedForNow) {
        self.number.get_or_insert(first);
        self.count += 1;
        self.waited = self.waited + refused.wait;
        self.in_doubt = refused.in_doubt.then_some(last);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The wait after one more refusal with these fields. `None`: the request is not sent again, because the waits would have
    /// more than `at_most` together, or because it was sent too often.
    pub(super) fn wait(&self, headers: &HeaderMap, now: Timestamp, at_most: Span) -> Option<Span> {
        let wait = said(headers, now).unwrap_or_else(|| self.unsaid()).max(MIN_WAIT);
        (self.count < MAX_REPEATS && self.waited + wait <= at_most).then_some(wait)
    }

    /// The wait if the server does not say how long.
    fn unsaid(&self) -> Span {
        let millis = MIN_WAIT.millis().saturating_mul(1_u64.checked_shl(self.count).unwrap_or(u64::MAX));
        Span::from_millis(millis).min(MAX_UNSAID)
    }
}

/// The wait that `Retry-After` asks for: seconds, or the time until a date.
fn said(headers: &HeaderMap, now: Timestamp) -> Option<Span> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // A number that is too large for the type is longer than any grant allows.
        return Some(Span::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let at = Timestamp::from_millis(u64::try_from(date.as_millis()).unwrap_or(u64::MAX));
    Some(at - now)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(784_111_770_000);
    const WEEK: Span = Span::from_secs(604_800);

    fn fields(retry_after: Option<&str>) -> HeaderMap {
        let value = |text| (RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        retry_after.map(value).into_iter().collect()
    }

    fn refused(seconds: u64) -> RefusedForNow {
        let wait = Span::from_secs(seconds);
        RefusedForNow { until: NOW + wait, wait, in_doubt: false }
    }

    #[test]
    fn wait_is_as_long_as_the_server_says() {
        for (text, seconds) in [
            ("1", 1),
            (" 120 ", 120),
            ("0", 1),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 7),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 7),
            ("Sun Nov  6 08:49:37 1994", 7),
            ("Sun, 06 Nov 1994 08:49:00 GMT", 1),
        ] {
            let wait = Refusals::default().wait(&fields(Some(text)), NOW, WEEK);
            assert_eq!(wait, Some(Span::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn wait_without_a_readable_time_doubles_up_to_a_minute() {
        for text in [None, Some(""), Some("soon"), Some("-1"), Some("1.5"), Some("1, 2")] {
            let mut refusals = Refusals::default();
            let waits: Vec<_> = (0..9)
                .map(|_| {
                    let wait = refusals.wait(&fields(text), NOW, WEEK).unwrap().millis() / 1000;
                    refusals.add(7, 8, refused(wait));
                    wait
                })
                .collect();
            assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60], "{text:?}");
        }
    }

    #[test]
    fn waits_have_a_sum_and_a_number() {
        let mut refusals = Refusals::default();
        let of = |refusals: &Refusals, seconds: &str, at_most| {
            refusals.wait(&fields(Some(seconds)), NOW, Span::from_secs(at_most)).is_some()
        };
        assert!(of(&refusals, "10", 10) && !of(&refusals, "11", 10));
        assert!(!of(&refusals, "99999999999999999999999", 604_800), "a hostile server asks for an eternity");
        assert!(!of(&refusals, "Fri, 31 Dec 9999 23:59:59 GMT", 604_800));
        refusals.add(7, 8, refused(10));
        assert!(of(&refusals, "5", 15) && !of(&refusals, "6", 15));
        (1..MAX_REPEATS).for_each(|number| refusals.add(7 + number, 8 + number, refused(1)));
        assert!(!of(&refusals, "1", 604_800), "{refusals:?}");
        assert_eq!(refusals.number, Some(7), "the number of the first one");
    }
}
