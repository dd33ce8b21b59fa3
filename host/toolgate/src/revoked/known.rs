//! The revoked sessions in memory, and the bound on their number.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::{Digest, Timestamp};
use server::{OpenedBy, SessionMark};

/// The maximal number of sessions per holder that are kept one by one.
pub(super) const MAX_EACH: usize = 256;

/// The maximal number of sessions of all holders. Beyond it, the holders with the most sessions keep fewer.
pub(super) const MAX: usize = 32_768;

/// A token, and how its sessions were opened.
pub(super) type SessionHolder = (Digest, OpenedBy);

/// The revoked sessions. Clones share holders: a change copies one holder.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    holders: HashMap<SessionHolder, Arc<Revoked>>,
    /// Sessions of an older host, which recorded only the id.
    nameless: Arc<HashMap<u128, Timestamp>>,
    rows: usize,
}

/// The revoked sessions of one holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Revoked {
    /// All sessions that expire at this time or before.
    before: Option<Timestamp>,
    /// Other sessions, each with its expiry.
    ids: BTreeMap<u128, Timestamp>,
}

/// A row of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// One session.
    Session(SessionMark),
    /// Every session of a holder that expires at this time or before.
    Before(SessionHolder, Timestamp),
    /// A session of an older host: its id and its expiry.
    Nameless(u128, Timestamp),
}

impl Known {
    pub(super) fn has(&self, session: &SessionMark) -> bool {
        let of_holder = self.holders.get(&holder(session));
        of_holder.is_some_and(|revoked| revoked.has(session)) || self.nameless.contains_key(&session.id)
    }

    /// All sessions of the holder that expire at this time or before are revoked.
    pub(super) fn revoked_until(&self, holder: SessionHolder) -> Option<Timestamp> {
        self.holders.get(&holder)?.before
    }

    /// Revokes a session, and drops expired sessions of its holder.
    pub(super) fn revoke(&mut self, session: &SessionMark, now: Timestamp) {
        self.change(holder(session), |revoked| {
            revoked.drop_expired(now);
            if !revoked.has(session) {
                revoked.ids.insert(session.id, session.expires);
            }
            if revoked.ids.len() > MAX_EACH {
                revoked.halve();
            }
        });
        if self.rows > MAX {
            self.make_room(now);
        }
    }

    /// Adds a row of the file.
    pub(super) fn take(&mut self, row: Row, now: Timestamp) {
        match row {
            Row::Session(session) => self.revoke(&session, now),
            Row::Before(holder, until) => self.change(holder, |revoked| {
                revoked.before = revoked.before.max(Some(until));
                revoked.drop_expired(now);
            }),
            Row::Nameless(id, expires) if now < expires => {
                Arc::make_mut(&mut self.nameless).insert(id, expires);
            }
            Row::Nameless(..) => {}
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows + self.nameless.len()
    }

    /// The rows of the file.
    pub(super) fn to_rows(&self) -> impl Iterator<Item = Row> + '_ {
        let of_holders = self.holders.iter().flat_map(|(holder, revoked)| {
            let session = |(id, expires): (&u128, &Timestamp)| {
                Row::Session(SessionMark { id: *id, token: holder.0, opened_by: holder.1, expires: *expires })
            };
            revoked.before.map(|until| Row::Before(*holder, until)).into_iter().chain(revoked.ids.iter().map(session))
        });
        of_holders.chain(self.nameless.iter().map(|(id, expires)| Row::Nameless(*id, *expires)))
    }

    fn change(&mut self, holder: SessionHolder, change: impl FnOnce(&mut Revoked)) {
        let revoked = Arc::make_mut(self.holders.entry(holder).or_default());
        let before = revoked.rows();
        change(revoked);
        self.rows = self.rows - before + revoked.rows();
        if revoked.rows() == 0 {
            self.holders.remove(&holder);
        }
    }

    /// Drops all expired sessions. Then halves the holders with the most sessions until there is room. Each holder keeps at
    /// least one row.
    fn make_room(&mut self, now: Timestamp) {
        let all: Vec<SessionHolder> = self.holders.keys().copied().collect();
        all.into_iter().for_each(|holder| self.change(holder, |revoked| revoked.drop_expired(now)));
        Arc::make_mut(&mut self.nameless).retain(|_, expires| now < *expires);
        // Makes more room than needed, so that the next session does not search all holders again.
        while self.rows > MAX - MAX / 16 {
            let largest = self.holders.iter().max_by_key(|(_, revoked)| revoked.ids.len());
            let Some(largest) = largest.filter(|(_, revoked)| revoked.ids.len() > 1).map(|(holder, _)| *holder) else {
                return;
            };
            self.change(largest, Revoked::halve);
        }
    }
}

impl Revoked {
    fn has(&self, session: &SessionMark) -> bool {
        self.before.is_some_and(|until| session.expires <= until) || self.ids.contains_key(&session.id)
    }

    fn rows(&self) -> usize {
        self.ids.len() + usize::from(self.before.is_some())
    }

    fn drop_expired(&mut self, now: Timestamp) {
        self.ids.retain(|_, expires| now < *expires);
        self.before = self.before.filter(|until| now < *until);
    }

    /// Revokes every session that expires no later than the older half of these.
    fn halve(&mut self) {
        let mut times: Vec<Timestamp> = self.ids.values().copied().collect();
        times.sort_unstable();
        let until = times.get(times.len() / 2).copied();
        self.before = self.before.max(until);
        self.ids.retain(|_, expires| Some(*expires) > until);
    }
}

fn holder(session: &SessionMark) -> SessionHolder {
    (session.token, session.opened_by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn session(token: usize, id: u128, expires: u64) -> SessionMark {
        SessionMark { id, token: Digest::of(token.to_string()), opened_by: OpenedBy::LogIn, expires: at(expires) }
    }

    #[test]
    fn beyond_the_bound_a_token_revokes_its_older_sessions() {
        let mut known = Known::default();
        let max = MAX_EACH as u64;
        for n in 1..=max {
            known.revoke(&session(1, u128::from(n), n), at(0));
        }
        assert!(known.rows() == MAX_EACH && !known.has(&session(1, 0, 1)), "each session has its own row");
        known.revoke(&session(1, 0, max + 1), at(0));
        assert!(known.rows() <= MAX_EACH / 2 + 1, "{}", known.rows());
        assert!((1..=max).all(|n| known.has(&session(1, u128::from(n), n))), "all of them stay revoked");
        assert!(known.has(&session(1, 9_999, max / 2)), "an older session is revoked with them");
        let by_link = SessionMark { opened_by: OpenedBy::Link, ..session(1, 9_999, 1) };
        for living in [session(1, 9_999, max + 2), session(2, 9_999, 1), by_link] {
            assert!(!known.has(&living), "{living:?}");
        }
    }

    #[test]
    fn total_is_limited_and_revoked_sessions_stay_revoked() {
        let mut known = Known::default();
        let (tokens, each) = (MAX / MAX_EACH * 2, MAX_EACH as u64);
        for n in 1..=each {
            for token in 0..tokens {
                known.revoke(&session(token, u128::from(n), n), at(0));
                assert!(known.rows() <= MAX);
            }
        }
        let all = |n: u64| (0..tokens).all(|token| known.has(&session(token, u128::from(n), n)));
        assert!((1..=each).all(all));
        assert!((0..tokens).all(|token| !known.has(&session(token, 9_999, each + 1))));
    }

    #[test]
    fn expired_sessions_make_room_while_the_host_runs() {
        let mut known = Known::default();
        for n in 0..200 {
            known.revoke(&session(1, n, 10), at(0));
        }
        known.revoke(&session(1, 1_000, 20), at(10));
        assert_eq!(known.rows(), 1);
        known.take(Row::Before(holder(&session(2, 0, 0)), at(15)), at(10));
        assert!(known.has(&session(2, 7, 15)) && known.rows() == 2);
        known.revoke(&session(2, 8, 40), at(15));
        assert_eq!(known.rows(), 2, "the expired row is dropped");
    }
}
