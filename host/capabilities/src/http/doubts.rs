//! The requests in the journal of a durable call that may have been carried out, and whose answers nobody knows.

use std::sync::Arc;

use domain::doubt::{DecidedRequest, DoubtfulRequest, DoubtfulRequests};
use domain::journal::{Entry, Record};
use domain::step::Durable;
use domain::{Digest, Timestamp};
use url::Url;

use super::HttpRule;

/// The requests that a person must decide about before the call can go on. Those that a grant calls idempotent are sent again
/// without a decision.
pub(super) fn doubtful_requests(durable: &Durable, rules: &[HttpRule]) -> Option<DoubtfulRequests> {
    let is_decided = |entry: u32| durable.decided.iter().any(|DecidedRequest { entry: of, .. }| *of == entry);
    let mut open = Open::default();
    durable.journal.iter().for_each(|entry| open.pass(entry));
    let doubtful = open.0.into_iter().filter_map(|request| {
        let entry = request.in_doubt.filter(|entry| !is_decided(*entry))?;
        (!is_idempotent(&request.name, rules)).then_some(DoubtfulRequest {
            entry,
            request: request.name,
            at: request.at,
        })
    });
    let doubtful: Arc<[DoubtfulRequest]> = doubtful.collect();
    (!doubtful.is_empty()).then(|| DoubtfulRequests::new(doubtful))
}

/// A request that was begun, and that has no answer yet.
struct OpenRequest {
    digest: Digest,
    name: Arc<str>,
    at: Timestamp,
    /// The number of steps before its refusal. `None`: it was not refused for now.
    refused_in: Option<u32>,
    /// The last entry that leaves it in doubt.
    in_doubt: Option<u32>,
}

/// The requests without an answer, in the order in which the guest made them.
#[derive(Default)]
struct Open(Vec<OpenRequest>);

impl Open {
    fn pass(&mut self, entry: &Entry) {
        let at = self.0.iter().position(|open| open.is_continued_by(entry));
        match (&entry.record, at) {
            (Record::Begun(name), None) => self.0.push(OpenRequest {
                digest: entry.digest,
                name: Arc::clone(name),
                at: entry.at,
                refused_in: None,
                in_doubt: Some(entry.number),
            }),
            (Record::Begun(_), Some(at)) => {
                if let Some(open) = self.0.get_mut(at) {
                    (open.refused_in, open.in_doubt, open.at) = (None, Some(entry.number), entry.at);
                }
            }
            (Record::Refused(refused), Some(at)) => {
                if let Some(open) = self.0.get_mut(at) {
                    open.refused_in = Some(entry.step);
                    open.in_doubt = refused.in_doubt.then_some(entry.number);
                }
            }
            (Record::Result(_), Some(at)) => drop(self.0.remove(at)),
            // A request that changes nothing is not begun.
            (Record::Refused(_) | Record::Result(_), None) => {}
        }
    }
}

impl OpenRequest {
    /// Whether an entry is about this request. Before the wait after a refusal, an equal request is another one.
    fn is_continued_by(&self, entry: &Entry) -> bool {
        self.digest == entry.digest && self.refused_in.is_none_or(|step| step < entry.step)
    }
}

/// Whether a grant says that the server carries out this request only once. The name can be shortened, and secrets are left
/// out of it, so this can be wrong. It decides only whether somebody is asked: before the request is sent again, the grant is
/// compared with the request itself.
fn is_idempotent(name: &str, rules: &[HttpRule]) -> bool {
    let Some((method, url)) = name.strip_prefix("http ").unwrap_or(name).split_once(' ') else { return false };
    let Ok(url) = Url::parse(url) else { return false };
    rules.iter().any(|rule| rule.idempotent && rule.allows(method, &url).is_ok())
}

#[cfg(test)]
mod tests {
    use domain::Span;
    use domain::doubt::RequestDecision;
    use domain::journal::RefusedForNow;

    use super::*;
    use crate::http::Reach;

    enum Is {
        Begun,
        Done,
        /// Whether it leaves an earlier sending in doubt.
        Refused(bool),
    }

    /// The entries of a journal: the step, the request, and what happened.
    fn durable(entries: &[(u32, &str, Is)]) -> Durable {
        let entry = |(number, (step, path, is)): (u32, &(u32, &str, Is))| {
            let name: Arc<str> = format!("http POST https://api.example.com{path}").into();
            let (until, wait) = (Timestamp::from_millis(9), Span::from_secs(1));
            Entry {
                number,
                step: *step,
                run: None,
                function: Some(name.clone()),
                digest: Digest::of(path),
                at: Timestamp::from_millis(u64::from(number)),
                salt: None,
                transferred: None,
                record: match is {
                    Is::Begun => Record::Begun(name),
                    Is::Done => Record::Result("{}".into()),
                    Is::Refused(in_doubt) => Record::Refused(RefusedForNow { until, wait, in_doubt: *in_doubt }),
                },
            }
        };
        Durable {
            started_at: Timestamp::from_millis(0),
            steps: [].into(),
            journal: (0..).zip(entries).map(entry).collect(),
            decided: [].into(),
        }
    }

    fn numbers(durable: &Durable, rules: &[HttpRule]) -> Vec<u32> {
        let doubtful = doubtful_requests(durable, rules);
        doubtful.iter().flat_map(DoubtfulRequests::all).map(|request| request.entry).collect()
    }

    #[test]
    fn request_without_an_answer_is_in_doubt() {
        use Is::{Begun, Done, Refused};
        type Entries<'a> = &'a [(u32, &'a str, Is)];
        let cases: [(Entries<'_>, &[u32]); 11] = [
            (&[(0, "/x", Begun)], &[0]),
            (&[(0, "/x", Begun), (0, "/x", Done)], &[]),
            (&[(0, "/x", Begun), (0, "/x", Done), (0, "/x", Begun)], &[2]),
            // Begun once more, after a decision.
            (&[(0, "/x", Begun), (0, "/x", Begun)], &[1]),
            (&[(0, "/x", Begun), (0, "/x", Begun), (0, "/x", Done)], &[]),
            // Refused for now.
            (&[(0, "/x", Begun), (0, "/x", Refused(false))], &[]),
            (&[(0, "/x", Begun), (0, "/x", Refused(true)), (0, "/y", Begun), (0, "/y", Refused(true))], &[1, 3]),
            (&[(0, "/x", Begun), (0, "/x", Refused(true)), (1, "/x", Begun)], &[2]),
            (&[(0, "/x", Begun), (0, "/x", Refused(true)), (1, "/x", Done)], &[]),
            // An equal request before the wait is another one.
            (&[(0, "/x", Begun), (0, "/x", Refused(true)), (0, "/x", Begun)], &[1, 2]),
            // An entry that changes nothing.
            (&[(0, "/x", Done), (0, "/y", Refused(false))], &[]),
        ];
        for (entries, expected) in cases {
            assert_eq!(numbers(&durable(entries), &[]), expected);
        }
    }

    #[test]
    fn decided_and_idempotent_requests_need_no_decision() {
        let entries = [(0, "/x", Is::Begun), (0, "/x", Is::Refused(true)), (0, "/v1/y", Is::Begun)];
        let of = |decided: &[u32]| {
            let decided =
                decided.iter().map(|entry| DecidedRequest { entry: *entry, decision: RequestDecision::SendAgain });
            Durable { decided: decided.collect(), ..durable(&entries) }
        };
        assert_eq!(numbers(&of(&[]), &[]), [1, 2]);
        assert_eq!(numbers(&of(&[1]), &[]), [2]);
        assert_eq!(numbers(&of(&[0, 1, 2]), &[]), [0; 0]);
        let rule = |idempotent, methods: &str| {
            let rule =
                HttpRule::parse("https://api.example.com/v1/", [methods.to_owned()].into(), Reach::Public).unwrap();
            HttpRule { idempotent, ..rule }
        };
        assert_eq!(numbers(&of(&[]), &[rule(true, "POST")]), [1]);
        assert_eq!(numbers(&of(&[]), &[rule(false, "POST"), rule(true, "PUT")]), [1, 2]);
    }
}
