//! The host memory of the resources of `wasi:http`. The library bounds some of them, charges none and has no hook where it
//! makes them, so this module measures the entries of the table.
//!
//! A request that was sent is not measured: [`session`](super::session) charges it before it is sent, until the guest has read
//! or dropped the end of the answer's body.

use http::HeaderMap;
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostIncomingBody};
use wasmtime_wasi_http::p2::types::{HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse};

use super::exchange::MAX_HEAD;
use super::session::MAX_WRITE;

/// The memory of a map for each field of its capacity: hash, name, value and links (about 110 bytes), and the allocator's
/// overhead for both texts.
const FIELD: usize = 160;

/// The texts of a map's fields. A guest's fields have at most 16 KiB and an answer's head at most this size. A map does not tell
/// which of the two it is, and counting all fields at each host call costs too much.
const TEXTS: usize = MAX_HEAD;

/// Pieces of a body that is not sent yet: one kept, one under way, one in the making.
const PIECES: usize = 3 * MAX_WRITE;

/// Bytes of all entries of `wasi:http` in a table.
pub(super) fn weight(table: &mut ResourceTable) -> usize {
    table.iter_mut().map(|entry| weigh(&*entry)).sum()
}

fn weigh(entry: &(dyn std::any::Any + Send)) -> usize {
    if let Some(fields) = entry.downcast_ref::<FieldMap>() {
        return weigh_fields(fields);
    }
    if let Some(request) = entry.downcast_ref::<HostOutgoingRequest>() {
        return weigh_request(request);
    }
    if let Some(answer) = entry.downcast_ref::<HostOutgoingResponse>() {
        return weigh_fields(&answer.headers) + answer.body.as_ref().map_or(0, |_| PIECES);
    }
    if let Some(answer) = entry.downcast_ref::<HostIncomingResponse>() {
        return weigh_fields(&answer.headers);
    }
    // Its trailers, which the library does not show.
    let may_have_trailers = entry.is::<HostIncomingBody>()
        || entry.downcast_ref().is_some_and(|trailers| !matches!(trailers, HostFutureTrailers::Consumed));
    if may_have_trailers { 2 * TEXTS } else { 0 }
}

fn weigh_request(request: &HostOutgoingRequest) -> usize {
    let method = match &request.method {
        Method::Other(method) => method.capacity(),
        _ => 0,
    };
    let scheme = match &request.scheme {
        Some(Scheme::Other(scheme)) => scheme.capacity(),
        _ => 0,
    };
    let texts = [&request.authority, &request.path_with_query].map(|text| text.as_ref().map_or(0, String::capacity));
    let body = request.body.as_ref().map_or(0, |_| PIECES);
    method + scheme + texts.iter().sum::<usize>() + body + weigh_fields(&request.headers)
}

fn weigh_fields(fields: &HeaderMap) -> usize {
    // Further values of one name are in a list that doubles when it is full.
    let more = 2 * fields.len().saturating_sub(fields.keys_len());
    let slots = fields.capacity() + more;
    if slots == 0 { 0 } else { TEXTS + slots * FIELD }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::session::{MAX_FIELDS, Session};
    use super::super::tests::Lines;
    use super::*;
    use crate::usage::HostMemory;

    fn fields(limit: usize, name: impl Fn(usize) -> String, value: &str) -> FieldMap {
        let mut session = Session::new(None, Arc::new(Lines::default()), HostMemory::new(0, Arc::new(())), None);
        let mut fields = FieldMap::new_mutable(limit);
        (0..).take_while(|n| fields.append(session.hooks(), name(*n), value.into()).is_ok()).for_each(drop);
        fields
    }

    /// The allocated memory of such a map, from its known layout.
    fn allocated(fields: &FieldMap) -> usize {
        let texts: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        let names = fields.keys_len().next_power_of_two().max(8) * 2;
        let values = (fields.len() - fields.keys_len()).next_power_of_two();
        texts + names * (size_of::<http::HeaderName>() + size_of::<http::HeaderValue>() + 32 + 4) + values * 72
    }

    #[test]
    fn header_fields_cost_at_least_their_allocated_memory() {
        let max = MAX_FIELDS;
        assert_eq!(weigh_fields(&FieldMap::new_mutable(max)), 0, "nothing is allocated for none");
        for (what, fields) in [
            ("many short names", fields(max, |n| format!("{n:x}"), "")),
            ("many values of one name", fields(max, |_| "a".into(), "")),
            ("few long values", fields(max, |n| format!("{n:x}"), &"v".repeat(2000))),
            ("one", fields(100, |_| "a".into(), "")),
        ] {
            assert!(!fields.is_empty(), "{what}");
            let (weight, least) = (weigh_fields(&fields), allocated(&fields));
            assert!(weight >= least, "{what}: {weight} < {least}");
        }
    }

    #[test]
    fn a_request_costs_its_texts_and_fields() {
        let mut table = ResourceTable::new();
        let request = HostOutgoingRequest {
            method: Method::Other("M".repeat(1000)),
            scheme: Some(Scheme::Other("s".repeat(100))),
            authority: Some("a".repeat(20_000)),
            path_with_query: Some("p".repeat(3000)),
            headers: FieldMap::new_mutable(100),
            body: None,
        };
        let request = table.push(request).expect("room");
        assert!((24_100..25_000).contains(&weight(&mut table)));
        let options = table.push(wasmtime_wasi_http::RequestOptions::default()).expect("room");
        assert!(weight(&mut table) < 25_000, "what is small costs what a handle costs");
        table.delete(request).expect("is there");
        table.delete(options).expect("is there");
        assert_eq!(weight(&mut table), 0, "removed resources weigh nothing");
    }
}
