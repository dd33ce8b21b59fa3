//! Carries out the requests of a durable call, each in one run only. Later runs get the recorded answers.

use std::sync::Arc;

use bytes::Bytes;
use domain::Timestamp;
use domain::doubt::RequestDecision;
use domain::journal::{Record, RefusedForNow, Transferred};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi_http::p2::types::HostFutureIncomingResponse;
use wasmtime_wasi_http::{Error, WasiBody};

use super::recorded::{Complete, Recorder, name};
use super::session::{Requests, Unsent, is_safe};
use super::whole::Whole;
use crate::journal::{Effect, HostCall, Journal, JournalError};
use crate::secrets::Vault;
use crate::stop::{Stop, excerpt};

/// The result of a request for the guest.
type Answer = Result<Response<WasiBody>, Error>;

/// The end of one sending of a request.
enum Sent {
    Answered(Answer),
    /// The server refused it for now. It is sent again after this time.
    Refused(Box<Complete>, Timestamp),
}

/// One sending of a request.
struct Sending {
    /// The number of its first entry in the journal.
    number: u32,
    /// An earlier run has begun it, and it may be repeated without a new entry.
    is_begun: bool,
    /// An earlier sending may have been carried out.
    in_doubt: bool,
}

/// The continuation of a request.
enum Next {
    Send(Sending),
    /// It is not sent. A person decided about it.
    Decided(Whole),
}

impl Requests {
    /// Carries out what the guest has finished, so that the guest finds the answers. If servers refused requests for now,
    /// returns the time until which the call waits. `may_wait`: the call can wait.
    pub(super) async fn settle(
        &mut self,
        table: &mut ResourceTable,
        may_wait: bool,
    ) -> wasmtime::Result<Option<Timestamp>> {
        let put_off = self.recorder.as_mut().map(Recorder::take_put_off).unwrap_or_default();
        for (future, request) in put_off {
            let sent = self.carry_out(request, may_wait).await?;
            self.pass_on(sent, &future, table)?;
        }
        while let Some((future, request)) = self.recorder.as_mut().and_then(|recorder| recorder.next(table)) {
            let sent = match request {
                Ok(request) => self.carry_out(request, may_wait).await?,
                Err(error) => Sent::Answered(Err(error)),
            };
            self.pass_on(sent, &future, table)?;
        }
        Ok(self.recorder.as_ref().and_then(Recorder::waits_until))
    }

    /// Gives the guest the answer, or keeps the request until the call has waited.
    fn pass_on(
        &mut self,
        sent: Sent,
        future: &Resource<HostFutureIncomingResponse>,
        table: &mut ResourceTable,
    ) -> wasmtime::Result<()> {
        match (sent, &mut self.recorder) {
            (Sent::Answered(answer), _) => {
                let worker = wasmtime_wasi::runtime::spawn(async {});
                *table.get_mut(future)? = HostFutureIncomingResponse::Ready(answer.map(|answer| (answer, worker)));
                Ok(())
            }
            (Sent::Refused(request, until), Some(recorder)) => {
                recorder.put_off(future, *request, until);
                Ok(())
            }
            (Sent::Refused(..), None) => Err(not_recorded().into()),
        }
    }

    /// The end of a request: from the journal, or from the server.
    async fn carry_out(&mut self, mut request: Complete, may_wait: bool) -> wasmtime::Result<Sent> {
        let Some(journal) = self.recorder.as_ref().map(|recorder| recorder.journal.clone()) else {
            return Err(not_recorded().into());
        };
        let call = call(shown(&request.parts, self.vault()), &request.parts, &request.body);
        let (number, begun) = match journal.effect(&call)? {
            Some(Effect::Done { result, transferred }) => {
                self.repeat(transferred);
                return Ok(Sent::Answered(Whole::read(&result)?.response(&self.memory)?));
            }
            Some(Effect::Refused { first, last, refused, transferred }) => {
                self.repeat(transferred);
                request.refusals.add(first, last, refused);
                return Ok(Sent::Refused(Box::new(request), refused.until));
            }
            Some(Effect::InDoubt { first, last }) => (first, Some(last)),
            None => (journal.length(), None),
        };
        let number = request.refusals.number.unwrap_or(number);
        let sending = match self.sending(&journal, &request, (number, begun))? {
            Next::Send(_) if !request.refusals.is_empty() && !may_wait => {
                let why = "the server refused the request for now, and the call is being stopped";
                let failed = Whole::failed(Error::InternalError(Some(why.into())));
                self.repeat(None);
                return self.recorded(&journal, &call, &request, (failed, None)).await;
            }
            Next::Send(sending) => sending,
            Next::Decided(whole) => {
                self.repeat(None);
                return self.recorded(&journal, &call, &request, (whole, None)).await;
            }
        };
        let (sent, transferred) = self.send(&journal, &call, &request, sending, may_wait).await?;
        match sent {
            Ok(whole) => self.recorded(&journal, &call, &request, (whole, transferred)).await,
            Err(refused) => {
                let last = journal.length();
                journal.add(&call, Record::Refused(refused), transferred)?;
                if !is_safe(&request.parts.method) {
                    journal.flush().await?;
                }
                request.refusals.add(number, last, refused);
                Ok(Sent::Refused(Box::new(request), refused.until))
            }
        }
    }

    /// The continuation of a request whose first entry has this number. `begun`: the entry of an earlier run that began it and
    /// left it in doubt.
    fn sending(
        &self,
        journal: &Journal,
        request: &Complete,
        (number, begun): (u32, Option<u32>),
    ) -> Result<Next, JournalError> {
        let sending = Sending { number, is_begun: begun.is_some(), in_doubt: true };
        let Some(entry) = begun.or(request.refusals.in_doubt) else {
            return Ok(Next::Send(Sending { in_doubt: false, ..sending }));
        };
        let named = name(&request.parts);
        match journal.decision(entry) {
            // Nobody has decided about one more sending after this one, so it is begun once more.
            Some(RequestDecision::SendAgain) => Ok(Next::Send(Sending { is_begun: false, ..sending })),
            Some(RequestDecision::Done { status, body }) => Ok(Next::Decided(Whole::given(*status, body))),
            Some(RequestDecision::Fail) => {
                let why = format!("{named} was interrupted, and nobody knows whether it was carried out");
                Ok(Next::Decided(Whole::failed(Error::InternalError(Some(why)))))
            }
            None if self.may_repeat(&request.parts) => Ok(Next::Send(sending)),
            None => Err(JournalError::InDoubt(format!(
                "{named} was begun by a run that was interrupted, and nobody knows whether it was carried out (entry {entry} of \
                 the journal)"
            ))),
        }
    }

    /// Records the answer of a request, and returns it for the guest.
    async fn recorded(
        &mut self,
        journal: &Journal,
        call: &HostCall,
        request: &Complete,
        (whole, transferred): (Whole, Option<Transferred>),
    ) -> wasmtime::Result<Sent> {
        let text = whole.text()?;
        journal.add(call, Record::Result(text.clone()), transferred)?;
        if !is_safe(&request.parts.method) {
            journal.flush().await?;
        }
        // From the same text as in a later run.
        drop(whole);
        Ok(Sent::Answered(Whole::read(&text)?.response(&self.memory)?))
    }

    /// Sends a request, and returns its bytes as well. `None`: it was not sent.
    async fn send(
        &mut self,
        journal: &Journal,
        call: &HostCall,
        request: &Complete,
        Sending { number, is_begun, in_doubt }: Sending,
        may_wait: bool,
    ) -> wasmtime::Result<(Result<Whole, RefusedForNow>, Option<Transferred>)> {
        let Complete { parts, options, body, .. } = request;
        let named = name(parts);
        let failed = |error: Error| {
            if in_doubt {
                // An earlier run may have carried it out, so the guest must not read that it was not sent.
                return Err(JournalError::Fault(format!("{named} could not be sent again: {error}")));
            }
            Ok(Whole::failed(error))
        };
        let sent = Request::from_parts(parts.clone(), Full::from(body.clone()).map_err(Error::from).boxed_unsync());
        let exchange = match self.check_request(sent, *options, Some(number)) {
            Ok(exchange) => exchange,
            Err(Unsent::Refused(error)) => return Ok((Ok(failed(error)?), None)),
            Err(Unsent::Stopped(stop)) if in_doubt => {
                return Err(JournalError::Fault(format!("{named} could not be sent again: {stop}")).into());
            }
            Err(Unsent::Stopped(stop)) => return Err(stop.into()),
        };
        if !is_safe(&parts.method) && !is_begun {
            journal.begin(call).await?;
        }
        let budget = Arc::clone(&exchange.budget);
        let (answer, task) = exchange.start();
        let sent = match answer.response(task).await {
            Ok(response) => match self.refusal(&response, request, in_doubt, journal.now()).filter(|_| may_wait) {
                Some(refused) => {
                    let (status, seconds) = (response.status().as_u16(), refused.wait.millis().div_ceil(1000));
                    self.log.warn(&format!("http: {named} was answered {status}; it is sent again after {seconds} s"));
                    Err(refused)
                }
                None => Ok(Whole::of(response, &self.memory, journal.room()).await?),
            },
            Err(error) => Ok(failed(error)?),
        };
        let transferred = budget.used();
        self.spend(transferred);
        Ok((sent, (transferred != Transferred::default()).then_some(transferred)))
    }

    /// The refusal in an answer, if the request is sent again after a wait.
    fn refusal(
        &self,
        response: &Response<WasiBody>,
        request: &Complete,
        in_doubt: bool,
        now: Timestamp,
    ) -> Option<RefusedForNow> {
        let is_safe = is_safe(&request.parts.method);
        let in_doubt = match response.status() {
            // The server did not carry it out.
            StatusCode::TOO_MANY_REQUESTS => in_doubt,
            StatusCode::SERVICE_UNAVAILABLE if is_safe => false,
            StatusCode::SERVICE_UNAVAILABLE if self.may_repeat(&request.parts) => true,
            _ => return None,
        };
        let at_most = self.max_wait(&request.parts)?;
        let wait = request.refusals.wait(response.headers(), now, at_most)?;
        Some(RefusedForNow { until: now + wait, wait, in_doubt })
    }
}

fn not_recorded() -> Stop {
    Stop::Fault("a request is not recorded".to_owned())
}

/// The request in the journal: without its query, what identifies its user, and secrets of the host.
pub(super) fn shown(parts: &Parts, vault: Option<&Vault>) -> String {
    let uri = &parts.uri;
    let host = uri.authority().map_or("", |authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    let text = format!("http {} {}://{host}{}", parts.method, uri.scheme_str().unwrap_or("https"), uri.path());
    match vault {
        Some(vault) => excerpt(&vault.redacted(text)),
        None => excerpt(&text),
    }
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
