//! The log lines of a server. Each is escaped and cut, and only some of each second are logged.

use std::sync::Arc;

use dispatch::ports::Clock;
use domain::PluginName;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::settings::Redact;

/// The longest line that is logged, in characters.
const MAX_LINE: usize = 2 << 10;

/// The bytes of a line that are kept until secrets are redacted. More than are logged, so that none is cut before.
const MAX_KEPT: usize = 4 * MAX_LINE;

/// The lines that are logged in a second.
const PER_SECOND: u32 = 20;

/// Counts the lines of each second.
#[derive(Default)]
struct Budget {
    second: u64,
    lines: u32,
    dropped: u64,
}

impl Budget {
    /// Whether a line may be logged in this second, and how many lines before it were not.
    fn take(&mut self, second: u64) -> Option<u64> {
        if second != self.second {
            (self.second, self.lines) = (second, 0);
        }
        if self.lines >= PER_SECOND {
            self.dropped += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.dropped))
    }
}

/// Logs what a server writes to its standard error, until its end.
pub(crate) async fn log(mut from: impl AsyncRead + Unpin, plugin: PluginName, redact: Redact, clock: Arc<dyn Clock>) {
    let (mut line, mut budget, mut chunk) = (Vec::new(), Budget::default(), [0; 4 << 10]);
    let mut write = |line: &mut Vec<u8>| {
        let second = clock.now().millis() / 1_000;
        if let Some(dropped) = budget.take(second) {
            if dropped > 0 {
                tracing::warn!(upstream = %plugin, "{dropped} lines of its standard error are left out");
            }
            let text = redact(String::from_utf8_lossy(line).into_owned());
            tracing::info!(target: "upstream", upstream = %plugin, "{}", escape::excerpt(&text, MAX_LINE));
        }
        line.clear();
    };
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        for part in chunk[..read].split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            // The rest of a long line is dropped.
            let room = MAX_KEPT.saturating_sub(line.len());
            line.extend_from_slice(&text[..text.len().min(room)]);
            if text.len() < part.len() {
                write(&mut line);
            }
        }
    }
    if !line.is_empty() {
        write(&mut line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_is_counted_and_left_out() {
        let mut budget = Budget::default();
        let logged = (0..1_000).filter(|_| budget.take(7).is_some()).count();
        assert_eq!(logged, PER_SECOND as usize);
        assert_eq!(budget.take(8), Some(1_000 - u64::from(PER_SECOND)));
        assert_eq!(budget.take(8), Some(0));
    }
}
