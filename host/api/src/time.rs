//! Times as texts.

use domain::Timestamp;
use time::OffsetDateTime;

/// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year, and "never" is a time after it.
const LAST: i64 = 253_402_300_799_999;

/// An RFC 3339 time in UTC with milliseconds. A time after the year 9999 becomes the last moment of that year.
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
    fn times_have_milliseconds_and_never_is_a_date() {
        let text = |millis| rfc3339(Timestamp::from_millis(millis));
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_782_400_007), "2000-02-29T00:00:00.007Z");
        assert_eq!(text(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
        assert_eq!(text(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
