//! Carries out the requests of a durable call, each in one run only. Later runs get the recorded answers.

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::p2::types::HostFutureIncomingResponse;
use wasmtime_wasi_http::{Error, WasiBody};

use super::recorded::{Complete, name};
use super::session::{Requests, is_safe};
use super::whole::Whole;
use crate::journal::{Effect, HostCall, JournalError};
use crate::stop::{Stop, excerpt};

impl Requests {
    /// Carries out what the guest has finished, so that the guest finds the answers.
    pub(super) async fn settle(&mut self, table: &mut ResourceTable) -> wasmtime::Result<()> {
        while let Some((future, request)) = self.recorder.as_mut().and_then(|recorder| recorder.next(table)) {
            let answer = self.carry_out(request).await?;
            let worker = wasmtime_wasi::runtime::spawn(async {});
            *table.get_mut(&future)? = HostFutureIncomingResponse::Ready(answer.map(|answer| (answer, worker)));
        }
        Ok(())
    }

    /// The answer to a request: from the journal, or from the server.
    async fn carry_out(&mut self, request: Complete) -> wasmtime::Result<Result<Response<WasiBody>, Error>> {
        let Some(journal) = self.recorder.as_ref().map(|recorder| recorder.journal.clone()) else {
            return Err(Stop::Fault("a request is not recorded".to_owned()).into());
        };
        let Complete { parts, options, body } = request;
        let body = match body {
            Ok(body) => body,
            Err(error) => return Ok(Err(error)),
        };
        let call = call(shown(&parts, |text| self.redacted(text)), &parts, &body);
        let is_safe = is_safe(&parts.method);
        let request = |parts: Parts, body: Bytes| {
            Request::from_parts(parts, Full::from(body).map_err(Error::from).boxed_unsync())
        };
        let recorded = if is_safe { journal.recorded(&call)?.map(Effect::Done) } else { journal.effect(&call)? };
        let (number, begun) = match recorded {
            Some(Effect::Done(text)) => {
                self.skip();
                return Whole::read(&text)?.response(&self.memory);
            }
            Some(Effect::InDoubt(number)) if !self.may_repeat(&parts) => {
                let name = name(&parts);
                return Err(JournalError::InDoubt(format!(
                    "{name} was begun by a run that was interrupted, and nobody knows whether it was carried out (entry {number} \
                     of the journal)"
                ))
                .into());
            }
            Some(Effect::InDoubt(number)) => (number, true),
            None => (journal.length(), false),
        };
        let named = name(&parts);
        let failed = |error: Error| {
            if begun {
                // An earlier run may have carried it out, so the guest must not read that it was not sent.
                return Err(JournalError::Fault(format!("{named} could not be sent again: {error}")));
            }
            Ok(Whole::failed(error))
        };
        let whole = match self.admit(request(parts, body), options, Some(number)) {
            Err(error) => failed(error)?,
            Ok(exchange) => {
                if !is_safe && !begun {
                    journal.begin(&call).await?;
                }
                let (answer, task) = exchange.start();
                match answer.response(task).await {
                    Ok(response) => Whole::of(response, &self.memory, journal.room()).await?,
                    Err(error) => failed(error)?,
                }
            }
        };
        let text = whole.text()?;
        if is_safe {
            journal.record(&call, text.clone())?
        } else {
            journal.write(&call, text.clone(), Vec::new()).await?
        }
        // From the same text as in a later run.
        drop(whole);
        Whole::read(&text)?.response(&self.memory)
    }
}

/// The request in the journal: without its query, what identifies its user, and secrets of the host.
pub(super) fn shown(parts: &Parts, redact: impl FnOnce(String) -> String) -> String {
    let uri = &parts.uri;
    let host = uri.authority().map_or("", |authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    excerpt(&redact(format!("http {} {}://{host}{}", parts.method, uri.scheme_str().unwrap_or("https"), uri.path())))
}

/// The request as the guest made it, without what the host adds. Secrets are placeholders.
fn call(name: String, parts: &Parts, body: &Bytes) -> HostCall {
    let mut headers: Vec<_> = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    headers.sort_by_key(|(name, _)| *name);
    let uri = parts.uri.to_string();
    let mut arguments: Vec<&[u8]> = vec![parts.method.as_str().as_bytes(), uri.as_bytes(), body];
    arguments.extend(headers.into_iter().flat_map(|(name, value)| [name.as_bytes(), value]));
    HostCall::new(name, "wasi:http/outgoing-handler.handle", &arguments)
}
