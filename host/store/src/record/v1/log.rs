//! Version 1 of the logs of calls.

use dispatch::ports::{LogLine, RunLog};
use domain::{CallIndex, Timestamp, TurnId, call::Level};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    struct RunLog "RunLog" {
        turn: TurnId,
        call: CallIndex,
        run: u32,
        written: u64,
        lines: Vec<LogLine>,
    }

    struct LogLine "LogLine" {
        at: Timestamp,
        level: Level,
        text: String,
    }

    enum Level "Level" { Debug, Info, Warn, Error }
}
