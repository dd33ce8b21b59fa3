//! The newest stored form, type by type, in blocks of `records!`. A field is one line:
//!
//! ```text
//! struct Vote "Vote" {
//!     by: PrincipalId,                               always written, and must be there to be read
//!     arguments: Option<Json> = "Option::is_none",   not written if this function says so; if missing, the default
//! }
//! ```
//!
//! `struct` and `enum` describe the type with that name, which the file imports. The name occurs twice because
//! serde wants it as a text, which its errors show. The compiler compares the two types, so that no field is forgotten.
//! `form` makes a new struct, where the stored form differs. Its conversions stand below it.
//!
//! Serde reads an attribute above a field or a variant, such as `rename`. Events have a macro of their own in
//! `event.rs`. Their fields are written the same way.
//!
//! To store a new field, add a line to the record of its type, and a version to the records that contain the type
//! (`docs/how-to/add-a-record-version.md`). The type of the field implements [`Field`]: through a record of its own, or by
//! hand in `field.rs`. Records of older hosts lack the field, so give it a function after `=`.
//!
//! Unknown members are refused: inside one version they can only be damage, or a release that broke its promise.

mod delivery;
mod event;
mod inbox;
mod journal;
mod log;
mod retention;
mod rows;
mod suspension;

use std::sync::Arc;

use domain::{
    Digest, Json, ObservableLimits, Outcome, OwnerId, PluginName, Receipt, Span, Timestamp,
    call::{Frozen, Pinned, Running, Wait},
    event::{Rejection, TurnEnd},
    journal::JournalSummary,
    outcome::{Failure, FailureCode},
    tool::{Approval, Executor, Recovery},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::field::{self, Field};
pub(crate) use rows::stored_state;

/// Describes how types are stored; the head of this file says how to read it.
macro_rules! records {
    () => {};
    (
        $(#[$about:meta])* struct $name:ident $text:literal {
            $($(#[$attribute:meta])* $field:ident: $type:ty $(= $absent:literal)?),* $(,)?
        }
        $($rest:tt)*
    ) => {
        const _: () = {
            $(#[$about])*
            #[derive(Serialize, Deserialize)]
            #[serde(remote = $text, deny_unknown_fields)]
            struct Stored {
                $(
                    $(#[$attribute])*
                    #[serde(with = "field" $(, default, skip_serializing_if = $absent)?)]
                    $field: $type
                ),*
            }

            records! { impl $name as Stored }
        };
        records! { $($rest)* }
    };
    (
        enum $name:ident $text:literal {
            $($(#[$attribute:meta])* $variant:ident $(($value:ty))? $({ $($field:ident: $type:ty),* })?),* $(,)?
        }
        $($rest:tt)*
    ) => {
        const _: () = {
            #[derive(Serialize, Deserialize)]
            #[serde(remote = $text, rename_all = "snake_case", deny_unknown_fields)]
            enum Stored {
                $($(#[$attribute])* $variant
                    $((#[serde(with = "field")] $value))?
                    $({ $(#[serde(with = "field")] $field: $type),* })?
                ),*
            }

            records! { impl $name as Stored }
        };
        records! { $($rest)* }
    };
    (
        $(#[$about:meta])* form $name:ident { $($field:ident: $type:ty $(= $absent:literal)?),* $(,)? }
        $($rest:tt)*
    ) => {
        $(#[$about])*
        #[derive(Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            $(#[serde(with = "field" $(, default, skip_serializing_if = $absent)?)] $field: $type),*
        }

        records! { impl $name as $name }
        records! { $($rest)* }
    };
    (impl $type:ident as $record:ident) => {
        impl Field for $type {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $record::serialize(self, serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $record::deserialize(deserializer)
            }
        }
    };
}

use records;

records! {
    enum Rejection "Rejection" { ContinueSiblings, CancelSiblings, AbortTurn }
    enum TurnEnd "TurnEnd" { Settled, Aborted, Cancelled }

    struct Pinned "Pinned" {
        plugin: PluginName,
        component: Digest,
        declaration: Digest,
        executor: Executor,
        approval: Approval,
        streaming: bool = "std::ops::Not::not",
        timeout: Span,
        recovery: Recovery,
        durable: bool = "std::ops::Not::not",
        frozen: Option<Frozen> = "Option::is_none",
        wait: Option<Wait> = "Option::is_none",
    }

    struct Frozen "Frozen" {
        version: u32,
        limits: ObservableLimits,
    }

    struct ObservableLimits "ObservableLimits" {
        #[serde(rename = "memory_bytes")]
        memory: usize,
        table_elements: usize,
        instances: usize,
        hostcall_bytes: usize,
        handles: usize,
        #[serde(rename = "arguments_bytes")]
        arguments: usize,
        host_bytes: usize,
        host_calls: u64,
        #[serde(rename = "keyvalue_written_bytes")]
        keyvalue_written: usize,
        http_requests: u32,
        http_concurrent: u32,
        #[serde(rename = "http_sent_bytes")]
        http_sent: usize,
        #[serde(rename = "http_received_bytes")]
        http_received: usize,
    }

    struct Wait "Wait" {
        expires: Span,
        on_expiry: domain::tool::OnExpiry,
        #[serde(rename = "responses")]
        choices: Option<Arc<[String]>> = "Option::is_none",
        #[serde(rename = "response")]
        data_schema: Option<Json> = "Option::is_none",
        #[serde(rename = "result")]
        result_schema: Option<Json> = "Option::is_none",
        editable: domain::tool::Editable,
    }

    enum Executor "Executor" { Server, Human, Client, Provider }
    enum Approval "Approval" { Auto, #[serde(rename = "requires-approval")] RequiresApproval }
    enum Recovery "Recovery" { Retry, Ask, Fail }

    struct Running "Running" {
        attempt: u32,
        owner: OwnerId,
        lease_end: Timestamp,
    }

    enum Outcome "Outcome" {
        Ok { value: Json, trusted: bool },
        Failed(Failure),
        Denied(Option<String>),
        Expired,
        Cancelled,
        CancelledBySibling,
        Unavailable,
        Invalidated,
        InDoubt,
    }

    struct Receipt "Receipt" {
        micros: u64,
        peak_memory: u64,
        peak_host_bytes: u64,
        host_calls: u64,
        bytes_in: u64,
        bytes_out: u64,
        journal: Option<JournalSummary> = "Option::is_none",
    }

    struct Failure "Failure" {
        code: FailureCode,
        message: String,
    }

    enum FailureCode "FailureCode" {
        UnknownTool,
        InvalidArguments,
        ToolFailed,
        ToolUnavailable,
        Trapped,
        OutOfTime,
        OutOfMemory,
        LimitExceeded,
        InvalidResult,
        Busy,
        HostFault,
    }
}
