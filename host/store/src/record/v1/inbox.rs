//! Version 1 of audiences. The store counts open suspensions by audience.

use domain::{
    PrincipalId,
    approvers::Who,
    suspension::{Audience, SuspensionKind},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    struct Audience "Audience" {
        kind: SuspensionKind,
        needs: Vec<Vec<Who>>,
        without: Vec<PrincipalId> = "Vec::is_empty",
        delegates: Vec<PrincipalId> = "Vec::is_empty",
    }
}
