//! Charges the host memory behind a guest's handles that the libraries for WASI allocate.
//!
//! | memory | charged |
//! |---|---|
//! | a handle of any kind, also streams and things to wait for | [`HANDLE`] for each slot that the table ever had, to the end of the call |
//! | fields, requests and answers of `wasi:http`, which can be larger | `capabilities/src/http/weight.rs`, while they exist |
//! | bytes that are read ahead or written: files, printed output, pieces of bodies | before they are allocated |
//!
//! The first two are charged at the guest's next host call, because a library allocates them. So a call can exceed
//! `host_bytes` by the memory of one host function, which `hostcall_bytes` bounds.

use capabilities::{Charge, HostMemory, Stop};
use wasmtime::component::ResourceTable;

/// The cost of a handle: twice its slot in the table (48 bytes, and the table doubles), the box of its resource (at
/// most 256 bytes, which a test checks), its entry among the children of another resource, and its slot in the engine's
/// own table.
pub(crate) const HANDLE: usize = 512;

/// The charge of one call's table.
pub(crate) struct Handles(Charge);

impl Handles {
    /// The handles of an empty table.
    pub(crate) fn new(memory: &HostMemory) -> Self {
        Self(memory.nothing())
    }

    /// Charges the slots of a table.
    pub(crate) fn count(&mut self, table: &mut ResourceTable) -> Result<(), Stop> {
        // A table does not tell its size. It tells the slot of a new entry: the last one, or a free one before it, and
        // then the table has not grown.
        let slots = match table.push(()) {
            Ok(next) => {
                let slot = next.rep() as usize;
                table.delete(next).map_err(|error| Stop::Fault(error.to_string()))?;
                slot
            }
            Err(_) => table.max_capacity(),
        };
        self.0.reach(slots.saturating_mul(HANDLE))
    }
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi::filesystem::Descriptor;
    use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable};
    use wasmtime_wasi_http::p2::body::{HostIncomingBody, HostIncomingBodyStream, HostOutgoingBody};
    use wasmtime_wasi_http::p2::types::{
        HostFutureIncomingResponse, HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
    };
    use wasmtime_wasi_http::{FieldMap, RequestOptions};

    use std::sync::Arc;

    use super::*;

    #[test]
    fn table_is_charged_for_its_peak_number_of_slots() {
        let memory = HostMemory::new(10 * HANDLE, Arc::new(()));
        let (mut handles, mut table) = (Handles::new(&memory), ResourceTable::new());
        let mut count = |table: &mut ResourceTable| handles.count(table).map(|()| memory.now());
        assert_eq!(count(&mut table).ok(), Some(0));
        let mut entries: Vec<_> = (0..10).map(|n| table.push(n).expect("room")).collect();
        assert_eq!(count(&mut table).ok(), Some(10 * HANDLE));
        table.delete(entries.remove(3)).expect("is there");
        assert_eq!(count(&mut table).ok(), Some(10 * HANDLE), "the place is still there");
        table.push(3).expect("room");
        assert!(count(&mut table).is_ok(), "it reuses the slot of another one");
        table.push(11).expect("room");
        assert!(count(&mut table).is_err());
    }

    #[test]
    fn full_table_is_charged_completely() {
        let memory = HostMemory::new(1 << 20, Arc::new(()));
        let (mut handles, mut table) = (Handles::new(&memory), ResourceTable::new());
        table.set_max_capacity(3);
        let entries: Vec<_> = (0..3).map(|n| table.push(n).expect("room")).collect();
        handles.count(&mut table).expect("room");
        assert_eq!((memory.now(), entries.len()), (3 * HANDLE, 3));
    }

    #[test]
    fn a_handle_costs_at_least_the_memory_behind_it() {
        for (name, size) in [
            ("pollable", size_of::<DynPollable>()),
            ("input stream", size_of::<DynInputStream>()),
            ("output stream", size_of::<DynOutputStream>()),
            ("stream of an answer", size_of::<HostIncomingBodyStream>()),
            ("descriptor", size_of::<Descriptor>()),
            ("error", size_of::<wasmtime::Error>()),
            ("fields", size_of::<FieldMap>()),
            ("request", size_of::<HostOutgoingRequest>()),
            ("body of a request", size_of::<HostOutgoingBody>()),
            ("options", size_of::<RequestOptions>()),
            ("answer to come", size_of::<HostFutureIncomingResponse>()),
            ("answer", size_of::<HostIncomingResponse>()),
            ("body of an answer", size_of::<HostIncomingBody>()),
            ("answer of its own", size_of::<HostOutgoingResponse>()),
        ] {
            assert!(size <= 256, "{name}: {size}");
        }
    }
}
