//! The usage of a submission, and the changes of the usage of open turns.

use domain::Json;

use crate::committer::{Contributor, TurnChange};
use crate::ports::{Commit, Footprint, RowChange};
use crate::request::{CallRequest, TurnRequest};

/// Contributes the change of what a principal's open turns use, for a store that counts it.
pub(crate) struct OpenTurns;

impl Contributor for OpenTurns {
    fn contribute(&self, change: &TurnChange<'_>, _: &Commit) -> Vec<RowChange> {
        let (less, more) = (change.before.map_or_else(Footprint::default, Footprint::of), Footprint::of(change.after));
        let principal = change.after.caller.clone();
        if less == more { Vec::new() } else { vec![RowChange::Open { principal, less, more }] }
    }
}

/// The usage of a submission.
pub(crate) fn asked(request: &TurnRequest) -> Footprint {
    let context = request.context.as_ref().map_or(0, Json::size);
    let size = |call: &CallRequest| {
        let origin = call.origin.as_ref().map_or(0, |origin| origin.members.size());
        call.arguments.size() + call.tool.len() + origin + call.result_size()
    };
    Footprint { turns: 1, bytes: context + request.calls.iter().map(size).sum::<usize>(), suspensions: 0 }
}
