//! Submissions while the disk hangs.

use std::sync::Arc;

use dispatch::ports::FaultKind;
use dispatch::{Dispatcher, Error, Parts, TurnRequest};
use domain::principal::Role;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::requests::{call, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::World;

#[tokio::test]
async fn ephemeral_turn_whose_read_hangs_is_refused() {
    let world = World::default();
    let store = Arc::new(MortalStore::new(world.store.clone()));
    let tools = Arc::new(WordTools::new(&["server"], |_| async { done() }));
    let host = Dispatcher::start(Parts { store: store.clone(), ..world.parts(tools) });
    let caller = principal("caller", Role::Caller);
    let handle = host.handle();
    let submit = |id: &str| {
        let request = TurnRequest { ephemeral: true, ..turn("conversation", [call(id, "server", "{}")]) };
        handle.submit(&caller, request)
    };
    assert!(submit("a").await.unwrap().ephemeral);
    store.hang();
    let refused = submit("b").await.unwrap_err();
    assert!(matches!(&refused, Error::Fault(fault) if fault.kind == FaultKind::NoAnswer), "{refused:?}");
}
