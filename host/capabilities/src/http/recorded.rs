//! The requests of a durable call. Their results are in the call's journal, so each is sent in one run only.
//!
//! A later run must see the same as the first one, also the order in which things become ready. So a request is carried
//! out while the guest waits, with its whole body, one after the other, and the guest gets the whole answer at once.
//!
//! A request that may change something is begun on disk before its first byte is sent. If a kill comes before its result
//! is on disk, nobody knows whether it was carried out: see [`Journal`].
//!
//! If the server refuses a request for now, the request stays here until the call has waited (`retry.rs`).

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use domain::Timestamp;
use futures::FutureExt as _;
use http::Request;
use http::request::Parts;
use http_body_util::{BodyExt as _, Collected};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::pipe::ClosedOutputStream;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_http::p2::types::HostFutureIncomingResponse;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::AuthorLog;
use super::answer::WithoutTrailers;
use super::retry::Refusals;
use crate::journal::Journal;
use crate::stop::{Stop, excerpt, size};
use crate::usage::{Charge, HostMemory};

/// Bytes of a request's body, which the host holds as a whole.
pub(super) const MAX_BODY: usize = 1 << 20;

/// Bytes that a guest can write to a body at once.
const PERMIT: usize = 64 << 10;

type Body = Pin<Box<dyn Future<Output = Result<Collected<Bytes>, Error>> + Send>>;

/// A request that was not carried out yet.
struct Waiting {
    parts: Parts,
    body: Body,
    options: RequestOptions,
}

/// The requests of a durable call.
pub(super) struct Recorder {
    pub(super) journal: Journal,
    memory: HostMemory,
    log: Arc<dyn AuthorLog>,
    /// The memory of bodies, until the call ends.
    held: Arc<Mutex<Vec<Charge>>>,
    /// The request that the guest is just handing over.
    handed_over: Option<Waiting>,
    /// The others, each with the number of its future, in the order in which the guest handed them over.
    waiting: Vec<(u32, Waiting)>,
    /// Those that the server refused for now, with the numbers of their futures, and the time until which the call waits for
    /// all of them.
    refused: Vec<(u32, Complete)>,
    until: Option<Timestamp>,
}

impl Recorder {
    pub(super) fn new(journal: Journal, memory: HostMemory, log: Arc<dyn AuthorLog>) -> Self {
        Self {
            journal,
            memory,
            log,
            held: Arc::default(),
            handed_over: None,
            waiting: Vec::new(),
            refused: Vec::new(),
            until: None,
        }
    }

    pub(super) fn hand_over(&mut self, request: Request<WasiBody>, options: RequestOptions) {
        let (parts, body) = request.into_parts();
        let body = WithoutTrailers(body).collect().boxed();
        self.handed_over = Some(Waiting { parts, body, options });
    }

    /// The request that was handed over belongs to this future.
    pub(super) fn awaited_by(&mut self, future: &Resource<HostFutureIncomingResponse>) {
        // The future of another request had the same number, and was dropped.
        self.keep(|of| of != future.rep());
        self.waiting.extend(self.handed_over.take().map(|request| (future.rep(), request)));
    }

    /// Gathers what the guest writes to a body, so that it never waits for the host.
    pub(super) fn gather(&self, stream: &mut DynOutputStream) {
        let inner = std::mem::replace(stream, Box::new(ClosedOutputStream));
        let (charge, held) = (self.memory.nothing(), Arc::clone(&self.held));
        *stream = Box::new(Gathering { inner, bytes: Vec::new(), charge: Some(charge), held });
    }

    /// Keeps a request that is sent again after this time.
    pub(super) fn put_off(
        &mut self,
        future: &Resource<HostFutureIncomingResponse>,
        request: Complete,
        until: Timestamp,
    ) {
        self.refused.push((future.rep(), request));
        self.until = self.until.max(Some(until));
    }

    /// The time until which the call waits for the servers, once no other request can be sent.
    pub(super) fn waits_until(&self) -> Option<Timestamp> {
        self.until
    }

    /// The requests that were put off. Their wait is over.
    pub(super) fn take_put_off(&mut self) -> Vec<(Resource<HostFutureIncomingResponse>, Complete)> {
        self.until = None;
        std::mem::take(&mut self.refused).into_iter().map(|(future, request)| (held(future), request)).collect()
    }

    /// The next request whose body is complete and whose future the guest still holds, or the error of its body.
    pub(super) fn next(&mut self, table: &ResourceTable) -> Option<Next> {
        self.keep(|future| table.get(&held(future)).is_ok());
        let mut requests = self.waiting.iter_mut().enumerate();
        let (at, body) = requests.find_map(|(at, (_, request))| Some((at, (&mut request.body).now_or_never()?)))?;
        let (future, Waiting { parts, options, .. }) = self.waiting.remove(at);
        let complete =
            |body: Collected<Bytes>| Complete { parts, options, body: body.to_bytes(), refusals: Refusals::default() };
        Some((held(future), body.map(complete)))
    }

    /// Reports the requests that are not sent, because the call ends without waiting for their answers.
    pub(super) fn finish(&mut self) {
        self.keep(|_| false);
    }

    /// Keeps the requests of these futures, and reports the others. They are never sent.
    fn keep(&mut self, is_kept: impl Fn(u32) -> bool) {
        let log = &self.log;
        self.waiting.retain(|(future, request)| {
            let is_kept = is_kept(*future);
            if !is_kept {
                let name = name(&request.parts);
                log.warn(&format!("http: {name} was not sent: the tool did not wait for its answer"));
            }
            is_kept
        });
    }
}

/// The request for people: without its query, which may hold anything.
pub(super) fn name(parts: &Parts) -> String {
    let uri = parts.uri.to_string();
    excerpt(&format!("{} {}", parts.method, uri.split(['?', '#']).next().unwrap_or_default()))
}

fn held(future: u32) -> Resource<HostFutureIncomingResponse> {
    Resource::new_borrow(future)
}

/// A request that the guest has finished.
pub(super) struct Complete {
    pub(super) parts: Parts,
    pub(super) options: RequestOptions,
    pub(super) body: Bytes,
    pub(super) refusals: Refusals,
}

type Next = (Resource<HostFutureIncomingResponse>, Result<Complete, Error>);

/// The stream of a body. It takes everything at once, and passes it on when the guest drops it.
struct Gathering {
    inner: DynOutputStream,
    bytes: Vec<u8>,
    charge: Option<Charge>,
    held: Arc<Mutex<Vec<Charge>>>,
}

impl OutputStream for Gathering {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.bytes.len() + bytes.len() > MAX_BODY {
            let what = format!("is durable, and wrote more than {} to the body of a request", size(MAX_BODY));
            return Err(StreamError::Trap(Stop::FixedLimit(what).into()));
        }
        if let Some(charge) = &mut self.charge {
            charge.grow(bytes.len()).map_err(|stop| StreamError::Trap(stop.into()))?;
        }
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Gathering {
    async fn ready(&mut self) {}
}

impl Drop for Gathering {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            // It fails only if nobody wants the body any more.
            let _ = self.inner.write(bytes.into());
        }
        self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(self.charge.take());
    }
}
