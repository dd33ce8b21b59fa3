//! What the host holds behind a guest's handles, as far as the libraries that implement WASI allocate it and ask nobody.
//!
//! | what | is charged |
//! |---|---|
//! | a handle of any kind, streams and things to wait for among them | [`HANDLE`] for each place that the table ever had, to the end of the call |
//! | what can be larger: fields, requests and answers of `wasi:http` | as `capability/http/weight.rs` says, for as long as it is there |
//! | what is read ahead or written: files, printed output, pieces of bodies | where it is allocated, before it is |
//!
//! The first two are charged when the guest calls its next host function, since what allocates is not ours. So a call can be
//! over `host_bytes` by what one host function allocates, which `hostcall_bytes` bounds, and by no more.

use wasmtime::component::ResourceTable;

use crate::capability::http;
use crate::ending::Stop;
use crate::spending::{Charge, Held};

/// What a handle costs: twice its place in the table (48 bytes, and the table doubles), the box of what is behind it (at most
/// 256 bytes, which a test holds), its place among the children of another one, and its place in the engine's own table.
pub(crate) const HANDLE: usize = 512;

/// The charges of one call's table.
pub(crate) struct Handles {
    places: Charge,
    http: Charge,
}

impl Handles {
    /// Of a table that is empty.
    pub(crate) fn new(held: &Held) -> Self {
        Self { places: held.nothing(), http: held.nothing() }
    }

    /// Charges the places that a table has by now.
    pub(crate) fn count(&mut self, table: &mut ResourceTable) -> Result<(), Stop> {
        // A table does not say how large it is, but where it puts what comes next: behind all others, or where something
        // was before, and then it is no larger than it was.
        let places = match table.push(()) {
            Ok(next) => {
                let places = next.rep() as usize;
                table.delete(next).map_err(|error| Stop::Fault(error.to_string()))?;
                places
            }
            Err(_) => table.max_capacity(),
        };
        self.places.reach(places.saturating_mul(HANDLE))
    }

    /// Charges what the entries of `wasi:http` take by now.
    pub(crate) fn weigh_http(&mut self, table: &mut ResourceTable) -> Result<(), Stop> {
        self.http.set(http::weight(table))
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

    use super::*;

    #[test]
    fn a_table_is_charged_for_the_most_places_that_it_ever_had() {
        let held = Held::new(10 * HANDLE);
        let (mut handles, mut table) = (Handles::new(&held), ResourceTable::new());
        let mut count = |table: &mut ResourceTable| handles.count(table).map(|()| held.now());
        assert_eq!(count(&mut table).ok(), Some(0));
        let mut entries: Vec<_> = (0..10).map(|n| table.push(n).expect("room")).collect();
        assert_eq!(count(&mut table).ok(), Some(10 * HANDLE));
        table.delete(entries.remove(3)).expect("is there");
        assert_eq!(count(&mut table).ok(), Some(10 * HANDLE), "the place is still there");
        table.push(3).expect("room");
        assert!(count(&mut table).is_ok(), "in the place of another one");
        table.push(11).expect("room");
        assert!(count(&mut table).is_err());
    }

    #[test]
    fn a_table_that_is_full_is_charged_whole() {
        let held = Held::new(1 << 20);
        let (mut handles, mut table) = (Handles::new(&held), ResourceTable::new());
        table.set_max_capacity(3);
        let entries: Vec<_> = (0..3).map(|n| table.push(n).expect("room")).collect();
        handles.count(&mut table).expect("room");
        assert_eq!((held.now(), entries.len()), (3 * HANDLE, 3));
    }

    #[test]
    fn what_is_behind_a_handle_is_no_larger_than_what_it_costs() {
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
