//! Version 1 of deliveries to webhooks.

use dispatch::ports::{Attempt, DeliveryRow, DeliveryState, Occasion};
use domain::{SuspensionId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::described;
use crate::record::field::{self, Field};

described! {
    DeliveryRow as DeliveryRowV1,
    Occasion as OccasionV1,
    DeliveryState as DeliveryStateV1,
    Attempt as AttemptV1,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DeliveryRow", deny_unknown_fields)]
struct DeliveryRowV1 {
    #[serde(with = "field")]
    suspension: SuspensionId,
    #[serde(with = "field")]
    occasion: Occasion,
    webhook: String,
    #[serde(with = "field")]
    at: Timestamp,
    #[serde(with = "field")]
    state: DeliveryState,
    attempts: u32,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    last: Option<Attempt>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Occasion", rename_all = "snake_case", deny_unknown_fields)]
enum OccasionV1 {
    Opened,
    Escalated { need: u16 },
    Closed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DeliveryState", rename_all = "snake_case", deny_unknown_fields)]
enum DeliveryStateV1 {
    Pending {
        #[serde(with = "field")]
        next: Timestamp,
    },
    Delivered,
    Failed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Attempt", deny_unknown_fields)]
struct AttemptV1 {
    #[serde(with = "field")]
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}
