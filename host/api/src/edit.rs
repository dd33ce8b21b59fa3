//! The schema's defaults for what edited arguments leave out.

use dispatch::{EditDefaults as Found, SuspensionView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Suspension, Verbatim};

/// Arguments that an approver wants to approve instead of those that are shown.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// All arguments of the call.
    pub arguments: Verbatim,
}

/// The schema's defaults for what an edit leaves out.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EditDefaults {
    /// An object with a JSON Pointer (RFC 6901) as each name. Absent if no default applies.
    pub defaults: Option<Verbatim>,
    /// The defaults for people: a JSON text on one line, escaped as in the `display` of a suspension.
    pub display: Option<String>,
}

impl From<Option<domain::Json>> for EditDefaults {
    fn from(found: Option<domain::Json>) -> Self {
        let display = found.as_ref().map(|found| escape::json_line(found.as_str()));
        Self { defaults: found.as_ref().map(Verbatim::from), display }
    }
}

impl Suspension {
    /// Adds the defaults for what its edits leave out.
    pub(crate) fn with_defaults_of_edits(mut self, item: &SuspensionView) -> Self {
        let of = |edited: &Option<Verbatim>| {
            let found = edited.as_ref().map(|edited| item.defaults_of(&edited.0));
            let unknown = found.is_some_and(|found| *found == Found::Unknown).then_some(true);
            (found.and_then(Found::known).map(Verbatim::from), unknown)
        };
        if let Some(closed) = &mut self.closed {
            (closed.defaults, closed.defaults_unknown) = of(&closed.arguments);
        }
        for vote in &mut self.votes {
            (vote.defaults, vote.defaults_unknown) = of(&vote.arguments);
        }
        self
    }
}
