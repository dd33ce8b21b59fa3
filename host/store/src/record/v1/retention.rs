//! Version 1 of ended turns and of their removal.

use dispatch::ports::EndedTurn;
use domain::{
    ConversationId, PrincipalId, Span, Timestamp, TurnId,
    retention::{Removal, RemovalRule, RemovedTurn},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    struct EndedTurn "EndedTurn" {
        turn: TurnId,
        conversation: ConversationId,
        caller: PrincipalId,
        tools: Vec<String>,
        at: Timestamp,
    }

    struct Removal "Removal" {
        at: Timestamp,
        rule: RemovalRule,
        bytes: u64,
        turns: Vec<RemovedTurn>,
        lost: Vec<u64> = "Vec::is_empty",
    }

    enum RemovalRule "RemovalRule" { Age { kept: Span }, Tool { tool: String, kept: Span }, Bytes { kept: u64 }, Salvage }

    struct RemovedTurn "RemovedTurn" {
        turn: TurnId,
        commits: u32,
    }
}
