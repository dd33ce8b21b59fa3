//! `wasi:http` (0.2: `types`, `outgoing-handler`): requests to what the operator allows, and to nothing else.
//!
//! ```text
//! guest ─ outgoing-handler.handle ─► session.rs   counts, holds the request against the rules (rule.rs), adds what the host adds
//!                                      │ on the host's runtime for I/O, under one limit of time
//!                                      ▼
//!                                    exchange.rs  resolve.rs filters addresses (address.rs) and pins them; client.rs connects;
//!                                      │          traffic.rs counts every byte; coding.rs unpacks
//! guest ◄─ incoming-body ──────────  answer.rs    piece by piece, as fast as the guest reads
//! ```
//!
//! A guest's own runtime waits for nothing but the answer. The host follows no redirect, keeps no connection, knows no
//! cookies and asks no proxy: each request of a guest is one connection to one checked address.

mod address;
mod answer;
mod client;
mod coding;
mod denial;
mod exchange;
mod resolve;
mod rule;
mod session;
mod traffic;
mod weight;

#[cfg(test)]
mod tests;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::add_only_http_to_linker_async;
use wasmtime_wasi_http::p2::bindings::http::types::HostFields;
use wasmtime_wasi_http::{FieldMap, WasiHttpCtxView, WasiHttpView};

pub use self::address::{is_public, may_reach};
pub use self::client::{HttpClient, InvalidAuthority};
pub use self::resolve::{Resolver, SystemResolver};
pub use self::rule::{HostPattern, HttpRule, InvalidRule, Reach, Scheme};
pub(crate) use self::session::{Session, Terms};
pub(crate) use self::weight::weight;
use crate::ending::Stop;
use crate::guest::Guest;

/// The version of the interfaces that the library links.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Links the two interfaces.
///
/// `fields.clone` is the host's own: of the library's, it is the one function that makes a guest the owner of more fields
/// than it could make itself, and as often as it likes. An answer's head is given to guests by reference otherwise.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap("[method]fields.clone", clone_fields)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn clone_fields(
    mut store: StoreContextMut<'_, Guest>,
    (fields,): (Resource<FieldMap>,),
) -> wasmtime::Result<(Resource<FieldMap>,)> {
    let mut http = store.data_mut().http();
    let held = http.table.get(&fields)?;
    let size: usize = held.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD).sum();
    if size > session::MAX_FIELDS {
        return Err(Stop::Limit(format!(
            "copied {size} bytes of header fields, at most {} may be copied",
            session::MAX_FIELDS
        ))
        .into());
    }
    Ok((HostFields::clone(&mut http, fields)?,))
}

/// What a field takes besides its name and its value.
const FIELD: usize = 72;

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let (session, table) = self.called_http().http_session();
        session.view(table)
    }
}
