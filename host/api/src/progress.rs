//! A client's report of the progress of a call that it carries out.

use dispatch::ports::Progress;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Verbatim, present};

/// The progress of a call that a client carries out. Those who follow the conversation get it as `call.progress`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportProgress {
    /// One line for people.
    pub message: String,
    /// The finished part, 0 to 1, if it is known.
    pub fraction: Option<f64>,
    /// Any JSON, for the program that shows the call.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Verbatim>,
}

impl From<ReportProgress> for Progress {
    fn from(report: ReportProgress) -> Self {
        let ReportProgress { message, fraction, data } = report;
        Self { message, fraction, data: data.map(|data| data.0) }
    }
}

/// The response to a report of progress.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProgressReported {
    /// Always true. A refused report is a problem.
    pub ok: bool,
    /// Whether nobody gets the report, because earlier reports used up the operator's limits `progress_updates` and
    /// `progress_bytes`. The call goes on.
    pub dropped: bool,
}
