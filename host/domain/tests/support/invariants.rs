//! Invariants of the facts of a turn. They hold at every moment. The property test of the domain and the simulation of
//! the whole loop check the same invariants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::domain::{
    CallIndex, Digest, Event, Json, Turn,
    call::{CallState, Pinned},
    event::CallEvent,
    tool::Approval,
};

/// Panics with the promise that is broken.
#[allow(unreachable_pub, reason = "one of the two crates that share this file is a test, which nothing can reach")]
pub fn check(facts: &[Event], turn: &Turn) {
    let mut arguments: HashMap<CallIndex, Json> = HashMap::new();
    let mut pinned: HashMap<CallIndex, Arc<Pinned>> = HashMap::new();
    let mut approved: HashMap<CallIndex, Digest> = HashMap::new();
    let (mut expiries, mut closed) = (HashMap::new(), HashSet::new());
    let mut settled = HashSet::new();
    let mut ended = 0;
    for fact in facts {
        assert_eq!(ended, 0, "nothing happens after the end of a turn: {fact:?}");
        match fact {
            Event::Call { call, event: CallEvent::Requested { arguments: submitted, pinned: to, .. } } => {
                arguments.insert(*call, submitted.clone());
                pinned.extend(to.clone().map(|to| (*call, to)));
            }
            Event::Call { call, event: CallEvent::Resolved { suspension, resolution, approved: binding, .. } } => {
                assert!(closed.insert(*suspension), "one resolution for each suspension");
                arguments.extend(resolution.arguments.clone().map(|edited| (*call, edited)));
                approved.extend(binding.map(|binding| (*call, binding)));
            }
            Event::Call { call, event: CallEvent::Expired { suspension, approved: binding, at } } => {
                assert!(closed.insert(*suspension), "one resolution for each suspension");
                assert!(*at >= expiries[suspension], "nothing expires before its time");
                approved.extend(binding.map(|binding| (*call, binding)));
            }
            Event::Call { call, event: CallEvent::Started { .. } } => {
                assert!(!settled.contains(call), "no call runs again once its result is recorded");
                let pinned = &pinned[call];
                if pinned.approval == Approval::RequiresApproval {
                    let binding = pinned.binding(&arguments[call]);
                    assert_eq!(approved.get(call), Some(&binding), "only exactly what was approved starts");
                }
            }
            Event::Call { call, event: CallEvent::Suspended { suspension } } => {
                assert!(!settled.contains(call), "nothing waits after its end");
                expiries.insert(suspension.id, suspension.expires_at);
            }
            Event::Call { call, event: CallEvent::Settled { .. } } => {
                assert!(settled.insert(*call), "one outcome for each call")
            }
            Event::TurnSettled { .. } => ended += 1,
            _ => {}
        }
    }
    assert_eq!(turn.is_ended(), settled.len() == turn.calls.len(), "a turn ends exactly when its calls have");
    assert_eq!(turn.next_due().is_some(), !turn.is_ended(), "an open turn is due some time");
    for (_, call) in turn.indexed() {
        let open = call.suspensions.iter().filter(|(_, closed)| closed.is_none()).count();
        assert_eq!(open, usize::from(call.state == CallState::Awaiting), "a call waits for one thing or for none");
    }
}
