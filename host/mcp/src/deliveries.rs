//! Which outcomes the clients have received, so that a request that is sent again gets the outcome that it missed, and a new
//! request makes a new call.
//!
//! This is memory, with a bound for each principal. The time until which something may be forgotten is known: an outcome
//! that is not later counts as received. So after a restart, a call that ended before is not given again, and one
//! that ended since is.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{PrincipalId, Timestamp};

use crate::key::{CallKey, RequestKey};

/// The maximum number of requests that are known of one principal.
const MAX_KNOWN: usize = 256;

/// The maximum number of principals. An issuer of access tokens can have any number of subjects.
const MAX_PRINCIPALS: usize = 4_096;

pub(crate) struct Deliveries(Mutex<Principals>);

struct Principals {
    /// Outcomes of unknown principals up to this time may have been received without being known.
    forgotten_until: Timestamp,
    known: HashMap<PrincipalId, Known>,
}

/// The requests of one principal.
struct Known {
    /// When a client last asked or received.
    used: Timestamp,
    /// Outcomes up to this time may have been received without being known.
    forgotten_until: Timestamp,
    newest: HashMap<RequestKey, Newest>,
    /// The keys, oldest first.
    order: VecDeque<RequestKey>,
}

/// The newest call that a request made.
#[derive(Clone, Copy)]
struct Newest {
    number: u64,
    is_received: bool,
}

impl Deliveries {
    /// Knows the deliveries from this time on.
    pub(crate) fn since(since: Timestamp) -> Self {
        Self(Mutex::new(Principals { forgotten_until: since, known: HashMap::new() }))
    }

    /// The number of the newest known call for this request.
    pub(crate) fn newest(&self, by: &PrincipalId, request: RequestKey) -> Option<u64> {
        self.locked().known.get(by)?.newest.get(&request).map(|newest| newest.number)
    }

    /// Whether the outcome of a call that ended at this time may have been received.
    pub(crate) fn is_received(&self, by: &PrincipalId, call: CallKey, ended: Timestamp) -> bool {
        let locked = self.locked();
        let known = locked.known.get(by);
        match known.and_then(|known| known.newest.get(&call.request)) {
            Some(newest) if newest.number == call.number => newest.is_received,
            // A later call was made because this one was received.
            Some(newest) if newest.number > call.number => true,
            _ => ended <= known.map_or(locked.forgotten_until, |known| known.forgotten_until),
        }
    }

    /// A request made this call or joined it.
    pub(crate) fn asked(&self, by: &PrincipalId, call: CallKey, now: Timestamp) {
        self.change(by, call, now, false);
    }

    /// A client receives the outcome of this call.
    pub(crate) fn received(&self, by: &PrincipalId, call: CallKey, now: Timestamp) {
        self.change(by, call, now, true);
    }

    fn change(&self, by: &PrincipalId, call: CallKey, now: Timestamp, is_received: bool) {
        let mut locked = self.locked();
        let Principals { forgotten_until, known: principals } = &mut *locked;
        if principals.len() >= MAX_PRINCIPALS && !principals.contains_key(by) {
            let oldest = principals.iter().min_by_key(|(_, known)| known.used).map(|(oldest, _)| oldest.clone());
            oldest.and_then(|oldest| principals.remove(&oldest));
            *forgotten_until = (*forgotten_until).max(now);
        }
        let until = *forgotten_until;
        let new = || Known { used: now, forgotten_until: until, newest: HashMap::new(), order: VecDeque::new() };
        let known = principals.entry(by.clone()).or_insert_with(new);
        known.used = now;
        match known.newest.get_mut(&call.request) {
            Some(newest) if newest.number == call.number => newest.is_received |= is_received,
            Some(newest) if newest.number > call.number => {}
            Some(newest) => *newest = Newest { number: call.number, is_received },
            None => {
                known.newest.insert(call.request, Newest { number: call.number, is_received });
                known.order.push_back(call.request);
            }
        }
        while known.order.len() > MAX_KNOWN {
            if let Some(oldest) = known.order.pop_front() {
                known.newest.remove(&oldest);
                known.forgotten_until = known.forgotten_until.max(now);
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Principals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use domain::Json;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn call(tool: &str, number: u64) -> CallKey {
        CallKey { request: RequestKey::new(tool, &Json::unchecked("{}")), number }
    }

    fn alice() -> PrincipalId {
        PrincipalId::new("alice").unwrap()
    }

    #[test]
    fn an_outcome_is_received_once() {
        let (deliveries, alice) = (Deliveries::since(at(10)), alice());
        deliveries.asked(&alice, call("t", 1), at(11));
        assert!(!deliveries.is_received(&alice, call("t", 1), at(12)));
        deliveries.received(&alice, call("t", 1), at(13));
        assert!(deliveries.is_received(&alice, call("t", 1), at(12)));
        deliveries.asked(&alice, call("t", 2), at(14));
        assert!(deliveries.is_received(&alice, call("t", 1), at(12)), "there is a later call");
        assert!(!deliveries.is_received(&alice, call("t", 2), at(15)));
        assert_eq!(deliveries.newest(&alice, call("t", 1).request), Some(2));
    }

    #[test]
    fn outcomes_from_before_the_start_count_as_received() {
        let (deliveries, alice) = (Deliveries::since(at(10)), alice());
        assert!(deliveries.is_received(&alice, call("t", 1), at(10)));
        assert!(!deliveries.is_received(&alice, call("t", 1), at(11)), "it ended while the host waited for it");
    }

    #[test]
    fn forgotten_outcomes_count_as_received() {
        let (deliveries, alice) = (Deliveries::since(at(10)), alice());
        deliveries.received(&alice, call("t", 1), at(11));
        for n in 0..MAX_KNOWN {
            deliveries.received(&alice, call(&format!("t{n}"), 1), at(20));
        }
        assert_eq!(deliveries.newest(&alice, call("t", 1).request), None, "it was forgotten");
        assert!(deliveries.is_received(&alice, call("t", 1), at(11)));
        assert!(!deliveries.is_received(&alice, call("t", 1), at(21)), "nothing was forgotten since");
        let eve = PrincipalId::new("eve").unwrap();
        assert!(!deliveries.is_received(&eve, call("t", 1), at(15)), "others forget nothing");
    }

    #[test]
    fn principals_are_forgotten_as_received() {
        let (deliveries, alice) = (Deliveries::since(at(10)), alice());
        deliveries.asked(&alice, call("t", 1), at(11));
        for n in 0..MAX_PRINCIPALS {
            deliveries.asked(&PrincipalId::new(&format!("p{n}")).unwrap(), call("t", 1), at(20));
        }
        assert_eq!(deliveries.locked().known.len(), MAX_PRINCIPALS);
        assert!(deliveries.is_received(&alice, call("t", 1), at(15)), "it was forgotten");
        assert!(!deliveries.is_received(&alice, call("t", 1), at(21)));
        let last = PrincipalId::new("p7").unwrap();
        assert!(!deliveries.is_received(&last, call("t", 1), at(15)), "others forget nothing");
    }
}
