//! Version 1 of deliveries to webhooks.

use dispatch::ports::{Attempt, DeliveryRow, DeliveryState, Occasion, Report};
use domain::{SuspensionId, Timestamp, TurnId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::records;
use crate::record::field::{self, Field};

records! {
    /// With either a suspension and its occasion, or a turn that settled. Hosts until format 4 wrote only the first.
    form DeliveryRowV1 {
        suspension: Option<SuspensionId> = "Option::is_none",
        occasion: Option<Occasion> = "Option::is_none",
        turn: Option<TurnId> = "Option::is_none",
        webhook: String,
        at: Timestamp,
        state: DeliveryState,
        attempts: u32,
        last: Option<Attempt> = "Option::is_none",
    }

    enum Occasion "Occasion" { Opened, Escalated { need: u16 }, Closed }
    enum DeliveryState "DeliveryState" { Pending { next: Timestamp }, Delivered, Failed }

    struct Attempt "Attempt" {
        at: Timestamp,
        status: Option<u16> = "Option::is_none",
        error: Option<String> = "Option::is_none",
    }
}

impl Field for DeliveryRow {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { report, webhook, at, state, attempts, last } = self.clone();
        let (suspension, occasion, turn) = match report {
            Report::Suspension(suspension, occasion) => (Some(suspension), Some(occasion), None),
            Report::TurnSettled(turn) => (None, None, Some(turn)),
        };
        DeliveryRowV1 { suspension, occasion, turn, webhook, at, state, attempts, last }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let DeliveryRowV1 { suspension, occasion, turn, webhook, at, state, attempts, last } =
            DeliveryRowV1::deserialize(deserializer)?;
        let report = match (suspension, occasion, turn) {
            (Some(suspension), Some(occasion), None) => Report::Suspension(suspension, occasion),
            (None, None, Some(turn)) => Report::TurnSettled(turn),
            _ => return Err(D::Error::custom("a delivery is about a suspension's occasion or about a turn")),
        };
        Ok(Self { report, webhook, at, state, attempts, last })
    }
}
