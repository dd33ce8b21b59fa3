//! `wasi:http` (0.2: `types`, `outgoing-handler`): requests that a rule of the operator allows.
//!
//! ```text
//! guest ─ outgoing-handler.handle ─► session.rs   counts, checks the rules (rule.rs), adds the host's headers
//!                                      │ on the host's runtime for I/O, under one time limit
//!                                      ▼
//!                                    exchange.rs  lookup.rs filters addresses (address.rs) and pins them; client.rs connects;
//!                                      │          metered.rs counts every byte; coding.rs unpacks
//! guest ◄─ incoming-body ──────────  answer.rs    piece by piece, as fast as the guest reads
//! ```
//!
//! A durable call sends a request while its guest waits, and gets the whole answer at once (`recorded.rs`, `settle.rs`, `whole.rs`).
//! It sends a request again after the server has refused it for now, if the grant says so (`retry.rs`).
//!
//! The guest's own runtime only waits for the answer. The host follows no redirect, keeps no connection, stores no cookies
//! and uses no proxy: each request of a guest is one connection to one checked address.

mod address;
mod answer;
mod client;
mod coding;
mod denial;
mod doubts;
mod exchange;
mod grant;
mod lookup;
mod metered;
mod nat64;
mod recorded;
mod resolver;
mod retry;
mod rule;
mod session;
mod settle;
mod weight;
mod whole;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use domain::Timestamp;
use domain::journal::Transferred;
use wasmtime::StoreContextMut;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::DynOutputStream;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::{self, HostFields};
use wasmtime_wasi_http::p2::body::HostOutgoingBody;
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::{FieldMap, RequestOptions, WasiHttpCtxView};

pub use self::address::{is_public, may_reach};
pub use self::client::{HttpClient, InvalidAuthority};
pub use self::grant::{HttpTable, RequestedHttp, Retry};
pub use self::nat64::Nat64;
use self::recorded::Recorder;
pub use self::resolver::{Resolver, SystemResolver};
pub use self::rule::{HttpRule, Reach, Scheme};
use self::session::{Session, Terms};
pub use self::words::{MaxWait, Method, Target};
use crate::interface::{AuthorLog, GrantOf, Granted, Interface, NewCall};
use crate::journal::Journal;
use crate::stop::Stop;
use crate::usage::{Charge, HostMemory};
use crate::view::{CallView, View};

/// The version of the interfaces that the library links.
const TYPES: &str = "wasi:http/types@0.2.12";
const HANDLER: &str = "wasi:http/outgoing-handler@0.2.12";

/// The requests of one call.
pub struct State {
    terms: Option<Box<Terms>>,
    /// Made for the first host call, because most calls send no request.
    session: Option<Box<Session>>,
    log: Arc<dyn AuthorLog>,
    memory: HostMemory,
    /// Records the answers of a durable call.
    journal: Option<Journal>,
    /// The memory of the resources in the table.
    weight: Charge,
}

impl State {
    /// Without terms every request is denied.
    fn new(terms: Option<Terms>, log: Arc<dyn AuthorLog>, memory: HostMemory, journal: Option<Journal>) -> Self {
        Self { terms: terms.map(Box::new), session: None, log, weight: memory.nothing(), memory, journal }
    }

    fn library<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        self.weight.set(weight::weight(table)).unwrap_or_else(|stop| stop.unwind());
        let Self { terms, session, log, memory, journal, .. } = self;
        let made = || {
            let recorder = journal.clone().map(|journal| Recorder::new(journal, memory.clone(), Arc::clone(log)));
            Box::new(Session::new(terms.take().map(|terms| *terms), Arc::clone(log), memory.clone(), recorder))
        };
        session.get_or_insert_with(made).view(table)
    }
}

/// Selects the library's part of a call in a linker.
struct Library;

impl HasData for Library {
    type Data<'a> = WasiHttpCtxView<'a>;
}

fn library<T: CallView<State>>(call: &mut T) -> WasiHttpCtxView<'_> {
    let View { state, table, .. } = call.view();
    state.library(table)
}

impl Interface for State {
    type Service = Option<HttpClient>;
    type Granted = Vec<HttpRule>;

    fn is_behind(package: &str, version: &str, interface: &str) -> bool {
        package == "wasi:http" && version.starts_with("0.2.") && matches!(interface, "types" | "outgoing-handler")
    }

    fn begin(
        service: &Self::Service,
        call: &NewCall<'_>,
        granted: Option<Granted<'_, GrantOf<Self::Granted>>>,
    ) -> Self {
        // A durable call that has lost its rules still records its requests, which are denied, without secrets.
        let granted = granted.filter(|granted| call.journal.is_some() || !(*granted.grants).as_ref().is_empty());
        let terms = granted.map(|granted| Terms {
            client: service.clone(),
            plugin: granted.plugin.clone(),
            rules: granted.grants,
            idempotency_key: granted.idempotency_key.clone(),
            vault: granted.vault.clone(),
            limits: *call.limits,
        });
        Self::new(terms, Arc::clone(&call.log), call.usage.memory.clone(), call.journal.cloned())
    }

    async fn settle(&mut self, table: &mut ResourceTable, may_wait: bool) -> wasmtime::Result<Option<Timestamp>> {
        match &mut self.session {
            Some(session) => session.settle(table, may_wait).await,
            None => Ok(None),
        }
    }

    fn finish(&mut self) {
        if let Some(session) = &mut self.session {
            session.finish();
        }
    }

    /// The host replaces the library's `fields.clone`: it is the only function of the library that gives a guest more
    /// fields than the guest could make itself. Guests get the head of an answer by reference. It replaces two others for
    /// durable calls.
    fn link<T: CallView<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        outgoing_handler::add_to_linker::<_, Library>(linker, library)?;
        types::add_to_linker::<_, Library>(linker, &LinkOptions::default().into(), library)?;
        linker.allow_shadowing(true);
        linker.instance(TYPES)?.func_wrap("[method]fields.clone", clone_fields::<T>)?;
        linker.instance(TYPES)?.func_wrap("[method]outgoing-body.write", write_body::<T>)?;
        linker.instance(HANDLER)?.func_wrap("handle", handle::<T>)?;
        linker.allow_shadowing(false);
        Ok(())
    }

    fn transferred(&self) -> Transferred {
        self.session.as_ref().map(|session| session.transferred()).unwrap_or_default()
    }
}

fn clone_fields<T: CallView<State>>(
    mut store: StoreContextMut<'_, T>,
    (fields,): (Resource<FieldMap>,),
) -> wasmtime::Result<(Resource<FieldMap>,)> {
    let mut http = library(store.data_mut());
    let map = http.table.get(&fields)?;
    let size: usize = map.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD).sum();
    if size > session::MAX_FIELDS {
        return Err(Stop::FixedLimit(format!(
            "copied {size} bytes of header fields, at most {} may be copied",
            session::MAX_FIELDS
        ))
        .into());
    }
    Ok((HostFields::clone(&mut http, fields)?,))
}

/// The library's function. A durable call gathers the body.
fn write_body<T: CallView<State>>(
    mut store: StoreContextMut<'_, T>,
    (body,): (Resource<HostOutgoingBody>,),
) -> wasmtime::Result<(Result<Resource<DynOutputStream>, ()>,)> {
    let View { state, table, .. } = store.data_mut().view();
    let written = types::HostOutgoingBody::write(&mut state.library(table), body)?;
    if let (Ok(stream), Some(session)) = (&written, &state.session) {
        session.gather(table.get_mut(stream)?);
    }
    Ok((written,))
}

/// The library's function. A durable call keeps the request until the guest waits for it.
fn handle<T: CallView<State>>(
    mut store: StoreContextMut<'_, T>,
    (request, options): (Resource<HostOutgoingRequest>, Option<Resource<RequestOptions>>),
) -> wasmtime::Result<(Result<Resource<HostFutureIncomingResponse>, types::ErrorCode>,)> {
    let View { state, table, .. } = store.data_mut().view();
    let handled = outgoing_handler::Host::handle(&mut state.library(table), request, options);
    match handled {
        Ok(future) => {
            if let Some(session) = &mut state.session {
                session.awaited_by(&future);
            }
            Ok((Ok(future),))
        }
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}

/// The memory of a field besides its name and its value.
const FIELD: usize = 72;
