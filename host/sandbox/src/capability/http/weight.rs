//! What the resources of `wasi:http` take of the host's memory. The library bounds some of them and charges none, and gives no
//! place to charge where they are made and kept, so what is in the table is weighed.
//!
//! What belongs to a request that was sent is not weighed: [`session`](super::session) charges that as a whole before it is
//! sent, until the guest has taken or thrown away the last of its answer's body.

use http::HeaderMap;
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostIncomingBody};
use wasmtime_wasi_http::p2::types::{HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse};

use super::exchange::MAX_HEAD;
use super::session::MAX_WRITE;

/// What a map has for each field that it has room for: hash, name, value and links (about 110 bytes), and what the allocator
/// adds to the texts of both.
const FIELD: usize = 160;

/// The texts of a map's fields. Those of a guest have at most 16 KiB and those of an answer's head at most this; which of the
/// two it is cannot be told, and walking over all fields at each host call costs more than it is worth.
const TEXTS: usize = MAX_HEAD;

/// Pieces of a body that was begun and not sent: one that is kept, one under way, one that is made.
const PIECES: usize = 3 * MAX_WRITE;

/// Everything of `wasi:http` in a table, in bytes.
pub(crate) fn weight(table: &mut ResourceTable) -> usize {
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
    // Its trailers, which it does not show.
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
    // A value beside another one of the same name lies in a list that doubles when it is full.
    let more = 2 * fields.len().saturating_sub(fields.keys_len());
    let places = fields.capacity() + more;
    if places == 0 { 0 } else { TEXTS + places * FIELD }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::session::{MAX_FIELDS, Session};
    use super::*;
    use crate::report::Log;
    use crate::spending::{Held, Traffic};

    fn fields(limit: usize, name: impl Fn(usize) -> String, value: &str) -> FieldMap {
        let log = Log::new(Arc::new(()), 0, Held::new(0), Traffic::default());
        let mut session = Session::new(None, log, Held::new(0));
        let mut fields = FieldMap::new_mutable(limit);
        (0..).take_while(|n| fields.append(session.hooks(), name(*n), value.into()).is_ok()).for_each(drop);
        fields
    }

    /// What the allocator gives out for such a map, by what is known of how it is made.
    fn allocated(fields: &FieldMap) -> usize {
        let texts: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        let names = fields.keys_len().next_power_of_two().max(8) * 2;
        let values = (fields.len() - fields.keys_len()).next_power_of_two();
        texts + names * (size_of::<http::HeaderName>() + size_of::<http::HeaderValue>() + 32 + 4) + values * 72
    }

    #[test]
    fn fields_weigh_at_least_what_they_take() {
        let most = MAX_FIELDS;
        assert_eq!(weigh_fields(&FieldMap::new_mutable(most)), 0, "nothing is allocated for none");
        for (what, fields) in [
            ("many short names", fields(most, |n| format!("{n:x}"), "")),
            ("many values of one name", fields(most, |_| "a".into(), "")),
            ("few long values", fields(most, |n| format!("{n:x}"), &"v".repeat(2000))),
            ("one", fields(100, |_| "a".into(), "")),
        ] {
            assert!(!fields.is_empty(), "{what}");
            let (weight, least) = (weigh_fields(&fields), allocated(&fields));
            assert!(weight >= least, "{what}: {weight} < {least}");
        }
    }

    #[test]
    fn a_request_weighs_what_was_said_of_it() {
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
        assert_eq!(weight(&mut table), 0, "what is gone weighs nothing");
    }
}
