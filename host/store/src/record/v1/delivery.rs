//! Version 1 of deliveries to webhooks.

use dispatch::ports::{Attempt, DeliveryRow, DeliveryState, Occasion};
use domain::{SuspensionId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    struct DeliveryRow "DeliveryRow" {
        suspension: SuspensionId,
        occasion: Occasion,
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
