//! Which sessions have ended: values and a bound, without a disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::{Digest, Timestamp};
use server::SessionMark;

/// The most sessions of one token, opened in one way, that are kept one by one.
pub(super) const MOST_EACH: usize = 256;

/// The most sessions of all tokens. Beyond that, the tokens with the most of them keep fewer.
pub(super) const MOST: usize = 32_768;

/// Of one token, opened in one way: by a log-in, or by a link.
pub(super) type Holder = (Digest, bool);

/// The sessions that have ended. Holders are shared between clones: a change copies one of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    holders: HashMap<Holder, Arc<Ended>>,
    /// Those of which an older host wrote down nothing but the id.
    nameless: Arc<HashMap<u128, Timestamp>>,
    rows: usize,
}

/// What has ended of one holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ended {
    /// Sessions that expire at this time or before.
    before: Option<Timestamp>,
    /// And these, with when each expires.
    ids: BTreeMap<u128, Timestamp>,
}

/// Something to be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// One session.
    Session(SessionMark),
    /// Every session of a holder that expires at this time or before.
    Before(Holder, Timestamp),
    /// A session of which nothing is known but its id and when it expires.
    Nameless(u128, Timestamp),
}

impl Known {
    pub(super) fn has(&self, session: &SessionMark) -> bool {
        let of_holder = self.holders.get(&holder(session));
        of_holder.is_some_and(|ended| ended.has(session)) || self.nameless.contains_key(&session.id)
    }

    /// Until when the sessions of a holder expire that have all ended.
    pub(super) fn all_until(&self, holder: Holder) -> Option<Timestamp> {
        self.holders.get(&holder)?.before
    }

    /// Ends a session, and forgets of its holder what has expired.
    pub(super) fn end(&mut self, session: &SessionMark, now: Timestamp) {
        self.change(holder(session), |ended| {
            ended.forget(now);
            if !ended.has(session) {
                ended.ids.insert(session.id, session.expires);
            }
            if ended.ids.len() > MOST_EACH {
                ended.halve();
            }
        });
        if self.rows > MOST {
            self.make_room(now);
        }
    }

    /// Takes in what was written down.
    pub(super) fn take(&mut self, row: Row, now: Timestamp) {
        match row {
            Row::Session(session) => self.end(&session, now),
            Row::Before(holder, until) => self.change(holder, |ended| {
                ended.before = ended.before.max(Some(until));
                ended.forget(now);
            }),
            Row::Nameless(id, expires) if now < expires => {
                Arc::make_mut(&mut self.nameless).insert(id, expires);
            }
            Row::Nameless(..) => {}
        }
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows + self.nameless.len()
    }

    /// Everything that is to be written down.
    pub(super) fn to_rows(&self) -> impl Iterator<Item = Row> + '_ {
        let of_holders = self.holders.iter().flat_map(|(holder, ended)| {
            let session = |(id, expires): (&u128, &Timestamp)| {
                Row::Session(SessionMark { id: *id, token: holder.0, by_link: holder.1, expires: *expires })
            };
            ended.before.map(|until| Row::Before(*holder, until)).into_iter().chain(ended.ids.iter().map(session))
        });
        of_holders.chain(self.nameless.iter().map(|(id, expires)| Row::Nameless(*id, *expires)))
    }

    fn change(&mut self, holder: Holder, change: impl FnOnce(&mut Ended)) {
        let ended = Arc::make_mut(self.holders.entry(holder).or_default());
        let before = ended.rows();
        change(ended);
        self.rows = self.rows - before + ended.rows();
        if ended.rows() == 0 {
            self.holders.remove(&holder);
        }
    }

    /// Forgets what has expired of all, and then halves whoever has most, until there is room. What cannot be halved is one
    /// row for each token.
    fn make_room(&mut self, now: Timestamp) {
        let all: Vec<Holder> = self.holders.keys().copied().collect();
        all.into_iter().for_each(|holder| self.change(holder, |ended| ended.forget(now)));
        Arc::make_mut(&mut self.nameless).retain(|_, expires| now < *expires);
        // A little more room than is needed, so that not each further one looks through all of them.
        while self.rows > MOST - MOST / 16 {
            let most = self.holders.iter().max_by_key(|(_, ended)| ended.ids.len());
            let Some(most) = most.filter(|(_, ended)| ended.ids.len() > 1).map(|(holder, _)| *holder) else { return };
            self.change(most, Ended::halve);
        }
    }
}

impl Ended {
    fn has(&self, session: &SessionMark) -> bool {
        self.before.is_some_and(|until| session.expires <= until) || self.ids.contains_key(&session.id)
    }

    fn rows(&self) -> usize {
        self.ids.len() + usize::from(self.before.is_some())
    }

    fn forget(&mut self, now: Timestamp) {
        self.ids.retain(|_, expires| now < *expires);
        self.before = self.before.filter(|until| now < *until);
    }

    /// From now on every session has ended that ends no later than the older half of these.
    fn halve(&mut self) {
        let mut times: Vec<Timestamp> = self.ids.values().copied().collect();
        times.sort_unstable();
        let until = times.get(times.len() / 2).copied();
        self.before = self.before.max(until);
        self.ids.retain(|_, expires| Some(*expires) > until);
    }
}

fn holder(session: &SessionMark) -> Holder {
    (session.token, session.by_link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn session(token: usize, id: u128, expires: u64) -> SessionMark {
        SessionMark { id, token: Digest::of(token.to_string()), by_link: false, expires: at(expires) }
    }

    #[test]
    fn of_one_token_a_number_is_kept_one_by_one_and_of_more_the_older_ones_have_all_ended() {
        let mut known = Known::default();
        let most = MOST_EACH as u64;
        for n in 1..=most {
            known.end(&session(1, u128::from(n), n), at(0));
        }
        assert!(known.rows() == MOST_EACH && !known.has(&session(1, 0, 1)), "each by itself");
        known.end(&session(1, 0, most + 1), at(0));
        assert!(known.rows() <= MOST_EACH / 2 + 1, "{}", known.rows());
        assert!((1..=most).all(|n| known.has(&session(1, u128::from(n), n))), "none of them counts again");
        assert!(known.has(&session(1, 9_999, most / 2)), "an older one ended with them");
        let by_link = SessionMark { by_link: true, ..session(1, 9_999, 1) };
        for living in [session(1, 9_999, most + 2), session(2, 9_999, 1), by_link] {
            assert!(!known.has(&living), "{living:?}");
        }
    }

    #[test]
    fn there_is_a_bound_on_all_of_them_and_no_session_counts_again_for_it() {
        let mut known = Known::default();
        let (tokens, each) = (MOST / MOST_EACH * 2, MOST_EACH as u64);
        for n in 1..=each {
            for token in 0..tokens {
                known.end(&session(token, u128::from(n), n), at(0));
                assert!(known.rows() <= MOST);
            }
        }
        let all = |n: u64| (0..tokens).all(|token| known.has(&session(token, u128::from(n), n)));
        assert!((1..=each).all(all));
        assert!((0..tokens).all(|token| !known.has(&session(token, 9_999, each + 1))));
    }

    #[test]
    fn what_has_expired_makes_room_while_the_host_runs() {
        let mut known = Known::default();
        for n in 0..200 {
            known.end(&session(1, n, 10), at(0));
        }
        known.end(&session(1, 1_000, 20), at(10));
        assert_eq!(known.rows(), 1);
        known.take(Row::Before(holder(&session(2, 0, 0)), at(15)), at(10));
        assert!(known.has(&session(2, 7, 15)) && known.rows() == 2);
        known.end(&session(2, 8, 40), at(15));
        assert_eq!(known.rows(), 2, "the watermark of what has expired is gone");
    }
}
