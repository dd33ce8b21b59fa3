//! Requests of a durable call that are never sent.

use async_trait::async_trait;
use domain::Timestamp;
use domain::journal::{Entry, JournalBounds, ValueChange};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi_http::RequestOptions;
use wasmtime_wasi_http::p2::types::HostFutureIncomingResponse;

use super::*;
use crate::http::recorded::Recorder;
use crate::journal::tests::durable;
use crate::journal::{Journal, JournalWriter, Recording, RunTime};
use crate::stop::Stop;

struct Nowhere;

#[async_trait]
impl JournalWriter for Nowhere {
    async fn write(&self, _: Vec<Entry>, _: Vec<ValueChange>) -> Result<bool, String> {
        Ok(true)
    }
}

impl RunTime for Nowhere {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn reached(&self, _: Timestamp, _: bool) {}
}

fn send(recorder: &mut Recorder, table: &mut ResourceTable, url: &str) -> Resource<HostFutureIncomingResponse> {
    recorder.hand_over(get(url), RequestOptions::default());
    let future = table.push(HostFutureIncomingResponse::Consumed).expect("there is room");
    recorder.awaited_by(&future);
    future
}

#[test]
fn requests_that_the_tool_does_not_wait_for_are_reported() {
    let lines = Arc::new(Lines::default());
    let recording = Recording { writer: Arc::new(Nowhere), bounds: JournalBounds::default() };
    let journal = Journal::new(&durable(&[].into(), 0), recording, Arc::new(Nowhere));
    let mut recorder = Recorder::new(journal, HostMemory::new(1 << 20, Arc::new(())), lines.clone());
    let mut table = ResourceTable::new();
    let dropped = send(&mut recorder, &mut table, "http://example.com/one?key=1");
    let _awaited = send(&mut recorder, &mut table, "http://example.com/two");
    table.delete(dropped).expect("it is there");
    assert!(recorder.next(&table).is_some(), "the other request is sent");
    let _held = send(&mut recorder, &mut table, "http://example.com/three");
    recorder.finish();
    let unsent = ["one", "three"]
        .map(|path| format!("http: GET http://example.com/{path} was not sent: the tool did not wait for its answer"));
    assert_eq!(*lines.0.lock().expect("no panic"), unsent);
}

/// The other guests have all of the memory.
struct NoRoom;

impl SharedMemory for NoRoom {
    fn covers_host_memory(&self, _: usize) -> bool {
        false
    }
}

#[test]
fn run_without_memory_for_a_request_ends_and_records_nothing() {
    let recording = Recording { writer: Arc::new(Nowhere), bounds: JournalBounds::default() };
    let journal = Journal::new(&durable(&[].into(), 0), recording, Arc::new(Nowhere));
    let rules = vec![rule("http://api.example.com", Reach::Private)];
    let setup = Setup { journal: Some(journal.clone()), shared: Arc::new(NoRoom), ..Setup::with(rules) };
    let (mut call, mut table) = (setup.world(), ResourceTable::new());
    drop(call.session.hooks().send_request(get("http://api.example.com/"), None, Box::new(ready(Ok(())))));
    let future = table.push(HostFutureIncomingResponse::Consumed).expect("there is room");
    call.session.awaited_by(&future);
    let ended = call.runtime.block_on(call.session.settle(&mut table, true));
    let stop = ended.expect_err("the guest must not see that").downcast::<Stop>();
    assert!(matches!(stop, Ok(Stop::GuestMemory)), "{stop:?}");
    assert_eq!(journal.length(), 0);
}
