//! Points in time and durations. This crate never reads a clock.

use std::ops::{Add, Sub};

use ::time::OffsetDateTime;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

/// A duration in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Timestamp {
    /// The latest time.
    pub const MAX: Self = Self(u64::MAX);

    /// Takes milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }
}

impl Span {
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }
}

/// Addition saturates: a sum after [`Timestamp::MAX`] is `Timestamp::MAX`.
impl Add<Span> for Timestamp {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// The time since an earlier point. Zero if that point is not earlier.
impl Sub for Timestamp {
    type Output = Span;

    fn sub(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// 9999-12-31T23:59:59.999Z. A year has four digits in RFC 3339, and the time for "never" is later.
const LAST: i64 = 253_402_300_799_999;

/// Formats a time as RFC 3339, in UTC with milliseconds. A time after the year 9999 becomes the last moment of 9999.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    let millis = i64::try_from(at.millis()).unwrap_or(LAST).min(LAST);
    let seconds = OffsetDateTime::from_unix_timestamp(millis / 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, clock) = (seconds.date(), seconds.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        millis % 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_never_is_still_a_date() {
        let text = |millis| rfc3339(Timestamp::from_millis(millis));
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_782_400_007), "2000-02-29T00:00:00.007Z");
        assert_eq!(text(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
        assert_eq!(text(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
