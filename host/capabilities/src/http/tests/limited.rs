//! Requests of a durable call that a server refuses for now.

use async_trait::async_trait;
use domain::Timestamp;
use domain::journal::{Entry, JournalBounds, Record, RefusedForNow, ValueChange};
use domain::step::Durable;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi_http::p2::types::HostFutureIncomingResponse;

use super::server::{Script, Server, says};
use super::*;
use crate::http::doubts::doubtful_requests;
use crate::journal::tests::durable;
use crate::journal::{JournalWriter, Recording, RunTime};

/// Keeps what is written. Its clock does not move.
#[derive(Default)]
struct Kept(Mutex<Vec<Entry>>);

#[async_trait]
impl JournalWriter for Kept {
    async fn write(&self, entries: Vec<Entry>, _: Vec<ValueChange>) -> Result<bool, String> {
        self.0.lock().expect("no panic").extend(entries);
        Ok(true)
    }
}

impl RunTime for Kept {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn reached(&self, _: Timestamp, _: bool) {}
}

/// A run of a durable call.
struct Run {
    call: HttpCall,
    table: ResourceTable,
    journal: Journal,
    kept: Arc<Kept>,
    port: u16,
}

type Future = Resource<HostFutureIncomingResponse>;

impl Run {
    /// A run after these entries and steps. The grant says `retry = { at_most = "60s" }`.
    fn after(entries: &[Entry], steps: u32, server: &Server, change: impl FnOnce(&mut HttpRule)) -> Self {
        Self::of(&durable(&entries.into(), steps), server, change)
    }

    fn of(durable: &Durable, server: &Server, change: impl FnOnce(&mut HttpRule)) -> Self {
        let kept = Arc::<Kept>::default();
        let recording = Recording { writer: kept.clone(), bounds: JournalBounds::default() };
        let journal = Journal::new(durable, recording, kept.clone());
        let mut setup = Setup::at(server.address);
        setup.rules[0].retry = Some(Span::from_secs(60));
        change(&mut setup.rules[0]);
        let call = Setup { journal: Some(journal.clone()), ..setup }.world();
        Self { call, table: ResourceTable::new(), journal, kept, port: server.address.port() }
    }

    fn first(server: &Server, change: impl FnOnce(&mut HttpRule)) -> Self {
        Self::after(&[], 0, server, change)
    }

    /// The next run, after the wait of this one has ended.
    fn next(&self, server: &Server, change: impl FnOnce(&mut HttpRule)) -> Self {
        self.call.runtime.block_on(self.journal.flush()).expect("it is kept");
        Self::after(&self.kept.0.lock().expect("no panic"), 1, server, change)
    }

    fn hand_over(&mut self, method: &str, path: &str) -> Future {
        let request = request(method, &format!("http://api.example.com:{}{path}", self.port), &[], "x");
        drop(self.call.session.hooks().send_request(request, None, Box::new(ready(Ok(())))));
        let future = self.table.push(HostFutureIncomingResponse::Consumed).expect("there is room");
        self.call.session.awaited_by(&future);
        future
    }

    /// The seconds until which the call waits.
    fn settle(&mut self, may_wait: bool) -> wasmtime::Result<Option<u64>> {
        let settled = self.call.runtime.block_on(self.call.session.settle(&mut self.table, may_wait));
        settled.map(|until| until.map(|until| until.millis() / 1000))
    }

    /// The status that the guest gets, or its error. `None`: it waits.
    fn answer(&self, future: &Future) -> Option<Result<u16, String>> {
        match self.table.get(future).expect("it is held") {
            HostFutureIncomingResponse::Ready(Ok((response, _))) => Some(Ok(response.status().as_u16())),
            HostFutureIncomingResponse::Ready(Err(error)) => Some(Err(error.to_string())),
            _ => None,
        }
    }

    fn records(&self) -> Vec<&'static str> {
        self.call.runtime.block_on(self.journal.flush()).expect("it is kept");
        let kept = self.kept.0.lock().expect("no panic");
        let name = |entry: &Entry| match &entry.record {
            Record::Begun(_) => "begun",
            Record::Refused(RefusedForNow { in_doubt: false, .. }) => "refused",
            Record::Refused(_) => "refused in doubt",
            Record::Result(_) => "result",
        };
        kept.iter().map(name).collect()
    }
}

fn refuses(status: u16, seconds: u64) -> Script {
    says(format!("HTTP/1.1 {status} Later\r\nretry-after: {seconds}\r\ncontent-length: 0\r\n\r\n"))
}

fn answers() -> Script {
    says("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
}

/// The first line of a request, and its key.
fn heard(server: &Server) -> (String, String) {
    let head = server.heard();
    let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap_or_default();
    (head.lines().next().unwrap_or_default().to_owned(), key.to_owned())
}

#[test]
fn other_requests_are_sent_before_the_call_waits() {
    let server = Server::start(vec![refuses(429, 5), answers(), answers()]);
    let mut run = Run::first(&server, |_| {});
    let (a, b) = (run.hand_over("POST", "/a"), run.hand_over("POST", "/b"));
    assert_eq!(run.settle(true).unwrap(), Some(5));
    assert_eq!((run.answer(&a), run.answer(&b)), (None, Some(Ok(200))));
    assert_eq!(run.records(), ["begun", "refused", "begun", "result"]);
    let (first, second) = (heard(&server), heard(&server));
    assert_eq!((first.0.as_str(), second.0.as_str()), ("POST /a HTTP/1.1", "POST /b HTTP/1.1"));
    let line = format!("http: POST http://api.example.com:{}/a was answered 429; it is sent again after 5 s", run.port);
    assert_eq!(run.call.log(), [line]);

    // Another run repeats this, and sends nothing before the wait has ended.
    let mut run = run.next(&server, |_| {});
    let (a, b) = (run.hand_over("POST", "/a"), run.hand_over("POST", "/b"));
    assert_eq!(run.settle(true).unwrap(), Some(5));
    assert_eq!((run.answer(&a), run.answer(&b), server.unheard()), (None, Some(Ok(200)), 0));
    run.journal.pass_step().unwrap();
    assert_eq!(run.settle(true).unwrap(), None);
    assert_eq!(run.answer(&a), Some(Ok(200)));
    assert_eq!(heard(&server), first, "the key is the same");
    assert_eq!(run.records(), ["begun", "result"]);
}

#[test]
fn request_that_is_not_refused_for_now_is_answered_at_once() {
    type Change = fn(&mut HttpRule);
    let (none, idempotent): (Change, Change) = (|rule| rule.retry = None, |rule| rule.idempotent = true);
    let granted: Change = |_| {};
    for (method, status, seconds, change, waits) in [
        ("POST", 429, 5, none, None),
        ("GET", 503, 5, none, None),
        ("POST", 429, 5, granted, Some(5)),
        ("GET", 429, 5, granted, Some(5)),
        ("GET", 503, 5, granted, Some(5)),
        ("POST", 503, 5, granted, None),
        ("POST", 503, 5, idempotent, Some(5)),
        ("GET", 500, 5, granted, None),
        ("GET", 429, 60, granted, Some(60)),
        ("GET", 429, 61, granted, None),
    ] {
        let server = Server::start(vec![refuses(status, seconds)]);
        let mut run = Run::first(&server, change);
        let future = run.hand_over(method, "/");
        let what = format!("{method} {status} {seconds}");
        assert_eq!(run.settle(true).unwrap(), waits, "{what}");
        assert_eq!(run.answer(&future), waits.is_none().then_some(Ok(status)), "{what}");
    }
    let server = Server::start(vec![refuses(429, 5)]);
    let mut run = Run::first(&server, |_| {});
    let future = run.hand_over("POST", "/");
    assert_eq!(run.settle(false).unwrap(), None, "a call that stops waits no more");
    assert_eq!(run.answer(&future), Some(Ok(429)));
}

#[test]
fn doubtful_request_is_not_sent_again_once_the_grant_changed() {
    let server = Server::start(vec![refuses(503, 5), answers()]);
    let mut run = Run::first(&server, |rule| rule.idempotent = true);
    run.hand_over("POST", "/");
    assert_eq!(run.settle(true).unwrap(), Some(5));
    assert_eq!(run.records(), ["begun", "refused in doubt"]);
    let _ = heard(&server);
    let mut run = run.next(&server, |_| {});
    run.hand_over("POST", "/");
    assert_eq!(run.settle(true).unwrap(), Some(5));
    run.journal.pass_step().unwrap();
    let error = run.settle(true).unwrap_err().to_string();
    assert!(error.contains("nobody knows whether it was carried out"), "{error}");
    assert_eq!(server.unheard(), 0);
}

#[test]
fn all_requests_in_doubt_are_decided_before_the_run() {
    let server = Server::start(vec![refuses(503, 5), refuses(503, 5), answers()]);
    let mut run = Run::first(&server, |rule| rule.idempotent = true);
    let _held = ["/a", "/b"].map(|path| run.hand_over("POST", path));
    assert_eq!(run.settle(true).unwrap(), Some(5));
    assert_eq!(run.records(), ["begun", "refused in doubt", "begun", "refused in doubt"]);
    let first = heard(&server);
    let _ = heard(&server);

    // The operator has learned that the server is not idempotent.
    let entries: Arc<[Entry]> = run.kept.0.lock().expect("no panic").as_slice().into();
    let durable = durable(&entries, 1);
    let setup = Setup::at(server.address);
    let requests = doubtful_requests(&durable, &setup.rules).expect("some are in doubt");
    let asked: Vec<_> = requests.all().iter().map(|each| (each.entry, each.request.to_string())).collect();
    let name = |path: &str| format!("http POST http://api.example.com:{}{path}", run.port);
    assert_eq!(asked, [(1, name("/a")), (3, name("/b"))]);
    let decisions = domain::Json::unchecked(r#"{"1":"send_again","3":{"status":204}}"#);
    let durable = Durable { decided: requests.decided(Some(&decisions)).expect("decisions").into(), ..durable };
    assert_eq!(doubtful_requests(&durable, &setup.rules), None);

    let mut run = Run::of(&durable, &server, |_| {});
    let (a, b) = (run.hand_over("POST", "/a"), run.hand_over("POST", "/b"));
    assert_eq!(run.settle(true).unwrap(), Some(5));
    run.journal.pass_step().unwrap();
    assert_eq!(run.settle(true).unwrap(), None);
    assert_eq!((run.answer(&a), run.answer(&b)), (Some(Ok(200)), Some(Ok(204))));
    assert_eq!((heard(&server), server.unheard()), (first, 0), "one is sent, with the same key");
    assert_eq!(run.records(), ["begun", "result", "result"]);
}

#[test]
fn refused_request_is_not_sent_again_while_the_call_stops() {
    let server = Server::start(vec![refuses(429, 5), answers()]);
    let mut run = Run::first(&server, |_| {});
    let future = run.hand_over("POST", "/");
    assert_eq!(run.settle(true).unwrap(), Some(5));
    let _ = heard(&server);
    // The call does not wait, because it was asked to stop.
    assert_eq!(run.settle(false).unwrap(), None);
    let answer = run.answer(&future);
    assert!(matches!(&answer, Some(Err(error)) if error.contains("the call is being stopped")), "{answer:?}");
    assert_eq!(run.records(), ["begun", "refused", "result"]);
    let mut again = Run::after(&run.kept.0.lock().expect("no panic"), 0, &server, |_| {});
    let future = again.hand_over("POST", "/");
    assert_eq!(again.settle(true).unwrap(), Some(5));
    assert_eq!(again.settle(false).unwrap(), None);
    assert_eq!((again.answer(&future), server.unheard()), (answer, 0), "a later run sees the same");
}
