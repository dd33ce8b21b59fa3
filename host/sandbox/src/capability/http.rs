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

#[cfg(test)]
mod tests;

use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::add_only_http_to_linker_async;
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};

pub use self::address::is_public;
pub use self::client::{HttpClient, InvalidAuthority};
pub use self::resolve::{Resolver, SystemResolver};
pub use self::rule::{HostPattern, HttpRule, InvalidRule, Reach, Scheme};
pub(crate) use self::session::{Session, Terms};
use crate::guest::Guest;

/// Links the two interfaces.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    add_only_http_to_linker_async(linker)
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let (session, table) = self.http_session();
        session.view(table)
    }
}
