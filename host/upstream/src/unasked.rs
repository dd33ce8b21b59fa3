//! The bound on messages that nobody asked for: reports of a server, its own requests, answers to requests that have ended.

use domain::Timestamp;

/// The messages of one minute.
const MAX_MESSAGES: u32 = 10_000;

/// The bytes of one minute, unless two messages of the largest size are more.
const MIN_BYTES: usize = 16 << 20;

const MINUTE: u64 = 60_000;

/// Counts the messages and bytes of each minute.
pub(crate) struct Unasked {
    begun: Timestamp,
    messages: u32,
    bytes: usize,
    max_bytes: usize,
}

impl Unasked {
    /// `largest` is the size of the largest message, in bytes.
    pub(crate) fn new(now: Timestamp, largest: usize) -> Self {
        Self { begun: now, messages: 0, bytes: 0, max_bytes: largest.saturating_mul(2).max(MIN_BYTES) }
    }

    /// Counts one message of this size.
    ///
    /// # Errors
    /// The bound that it breaks. The text continues a sentence about the server.
    pub(crate) fn take(&mut self, now: Timestamp, bytes: usize) -> Result<(), String> {
        // A clock that was set back begins a new minute.
        let passed = now.millis().checked_sub(self.begun.millis());
        if passed.is_none_or(|passed| passed >= MINUTE) {
            (self.begun, self.messages, self.bytes) = (now, 0, 0);
        }
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.messages > MAX_MESSAGES {
            return Err(format!("sent more than {MAX_MESSAGES} messages that nobody asked for within a minute"));
        }
        if self.bytes > self.max_bytes {
            let max = self.max_bytes;
            return Err(format!("sent more than {max} bytes that nobody asked for within a minute"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::Span;

    use super::*;

    #[test]
    fn messages_and_bytes_of_a_minute_are_bounded() {
        let begun = Timestamp::from_millis(1_000_000);
        let mut unasked = Unasked::new(begun, 1);
        for _ in 0..MAX_MESSAGES {
            unasked.take(begun, 1).unwrap();
        }
        assert!(unasked.take(begun, 1).unwrap_err().contains("10000 messages"));
        let later = begun + Span::from_millis(MINUTE);
        unasked.take(later, MIN_BYTES).unwrap();
        let last = later + Span::from_millis(MINUTE - 1);
        assert!(unasked.take(last, 1).unwrap_err().contains("16777216 bytes"));
        unasked.take(later + Span::from_millis(MINUTE), MIN_BYTES).unwrap();
        // The clock was set back.
        unasked.take(begun, MIN_BYTES).unwrap();
        let mut large = Unasked::new(begun, MIN_BYTES);
        large.take(begun, 2 * MIN_BYTES).unwrap();
        assert!(large.take(begun, 1).is_err());
    }
}
