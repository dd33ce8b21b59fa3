//! The run or the requests that a kill of the host left in doubt, in the JSON of a suspension.

use domain::Suspension;
use domain::doubt::{Doubt, DoubtfulRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rfc3339;

/// A request that was begun, and whose answer nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestInDoubt {
    /// Its entry in the journal of the call.
    pub entry: u32,
    /// Its method and URL without a query. Secrets of the host and the user of the URL are left out.
    pub request: String,
    /// When it was begun.
    pub at: String,
}

impl From<&DoubtfulRequest> for RequestInDoubt {
    fn from(request: &DoubtfulRequest) -> Self {
        Self { entry: request.entry, request: request.request.to_string(), at: rfc3339(request.at) }
    }
}

pub(crate) fn attempt(suspension: &Suspension) -> Option<u32> {
    match suspension.doubt()? {
        Doubt::Run(attempt) => Some(*attempt),
        Doubt::Requests(_) => None,
    }
}

pub(crate) fn requests(suspension: &Suspension) -> Vec<RequestInDoubt> {
    let requests = suspension.doubtful_requests();
    requests.map_or_else(Vec::new, |requests| requests.all().iter().map(RequestInDoubt::from).collect())
}
