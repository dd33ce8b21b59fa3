//! A whole answer, and its form in the journal of a durable call.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use serde::{Deserialize, Serialize};
use wasmtime_wasi_http::{Error, WasiBody};

use crate::journal::JournalError;
use crate::stop::size;
use crate::usage::{Charge, HostMemory};

/// A whole answer, or the reason why it is missing.
pub(super) struct Whole {
    stored: Stored,
    /// The memory of an answer from a server.
    _charge: Option<Charge>,
}

/// The stored form. Journals of older hosts have it, so a change must read them. Bytes are in Base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Stored {
    Answer {
        status: u16,
        headers: Fields,
        body: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trailers: Option<Fields>,
        /// The error after the body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StoredError>,
    },
    Failed(StoredError),
}

type Fields = Vec<(String, String)>;

impl Whole {
    pub(super) fn failed(error: Error) -> Self {
        Self { stored: Stored::Failed(error.into()), _charge: None }
    }

    /// The answer that a person gives instead of a server.
    pub(super) fn given(status: u16, body: &str) -> Self {
        let (headers, body) = (Fields::new(), STANDARD.encode(body));
        Self { stored: Stored::Answer { status, headers, body, trailers: None, error: None }, _charge: None }
    }

    /// Reads an answer to its end.
    ///
    /// # Errors
    /// It needs more host memory than the call has, or more room than `room` in the journal.
    pub(super) async fn of(response: Response<WasiBody>, memory: &HostMemory, room: usize) -> wasmtime::Result<Self> {
        let (head, mut body) = response.into_parts();
        let (mut charge, mut bytes, mut trailers, mut error) = (memory.nothing(), Vec::new(), None, None);
        while let Some(frame) = body.frame().await {
            match frame.map(Frame::into_data) {
                Ok(Ok(piece)) => {
                    charge.grow(piece.len())?;
                    if bytes.len() + piece.len() > room {
                        let left = size(room);
                        let message = format!(
                            "got an answer of more than the {left} that its journal can take (`journal_bytes`)"
                        );
                        return Err(JournalError::Full(message).into());
                    }
                    bytes.extend_from_slice(&piece);
                }
                Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
                Err(broken) => {
                    error = Some(broken.into());
                    break;
                }
            }
        }
        // Its text, in Base64.
        charge.grow(bytes.len() + bytes.len() / 3)?;
        let stored = |headers: &HeaderMap| {
            fields(headers).map(|(name, value)| (name.to_owned(), STANDARD.encode(value))).collect()
        };
        let (status, headers, trailers) = (head.status.as_u16(), stored(&head.headers), trailers.as_ref().map(stored));
        let stored = Stored::Answer { status, headers, body: STANDARD.encode(bytes), trailers, error };
        Ok(Self { stored, _charge: Some(charge) })
    }

    pub(super) fn text(&self) -> Result<Arc<str>, JournalError> {
        serde_json::to_string(&self.stored).map(Arc::from).map_err(|error| JournalError::Fault(error.to_string()))
    }

    pub(super) fn read(text: &str) -> Result<Self, JournalError> {
        let stored = serde_json::from_str(text);
        stored.map(|stored| Self { stored, _charge: None }).map_err(|error| damaged(&error))
    }

    /// The answer for the guest.
    ///
    /// # Errors
    /// The call has no host memory for it, or it is damaged.
    pub(super) fn response(self, memory: &HostMemory) -> wasmtime::Result<Result<Response<WasiBody>, Error>> {
        let (status, headers, body, trailers, error) = match self.stored {
            Stored::Failed(error) => return Ok(Err(error.into())),
            Stored::Answer { status, headers, body, trailers, error } => (status, headers, body, trailers, error),
        };
        let charge = memory.charge(body.len())?;
        let body = STANDARD.decode(body).map_err(|error| damaged(&error))?;
        let mut frames = VecDeque::new();
        if !body.is_empty() {
            frames.push_back(Ok(Frame::data(Bytes::from(body))));
        }
        frames.extend(trailers.map(read).transpose()?.map(|trailers| Ok(Frame::trailers(trailers))));
        frames.extend(error.map(|error| Err(error.into())));
        let mut response = Response::new(Frames { frames, _charge: charge }.boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(status).map_err(|error| damaged(&error))?;
        *response.headers_mut() = read(headers)?;
        Ok(Ok(response))
    }
}

/// The fields of a message in their order.
fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

fn damaged(error: &dyn std::error::Error) -> JournalError {
    JournalError::Fault(format!("the journal has a damaged answer: {error}"))
}

fn read(stored: Fields) -> Result<HeaderMap, JournalError> {
    let mut headers = HeaderMap::new();
    for (name, value) in stored {
        let name = HeaderName::try_from(name).map_err(|error| damaged(&error))?;
        let value = STANDARD.decode(value).map_err(|error| damaged(&error))?;
        headers.append(name, HeaderValue::try_from(value).map_err(|error| damaged(&error))?);
    }
    Ok(headers)
}

/// A body that is there.
struct Frames {
    frames: VecDeque<Result<Frame<Bytes>, Error>>,
    _charge: Charge,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(self.frames.pop_front())
    }
}

macro_rules! errors {
    (plain: $($plain:ident)*; sized: $($sized:ident($type:ty))*;) => {
        /// An error that a guest can get.
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        enum StoredError {
            $($plain,)*
            $($sized(Option<$type>),)*
            DnsError { rcode: Option<String>, info_code: Option<u16> },
            TlsAlertReceived { alert_id: Option<u8>, alert_message: Option<String> },
        }

        impl From<Error> for StoredError {
            fn from(error: Error) -> Self {
                match error {
                    $(Error::$plain => Self::$plain,)*
                    $(Error::$sized(value) => Self::$sized(value),)*
                    Error::DnsError { rcode, info_code } => Self::DnsError { rcode, info_code },
                    Error::TlsAlertReceived { alert_id, alert_message } => {
                        Self::TlsAlertReceived { alert_id, alert_message }
                    }
                    other => Self::InternalError(Some(other.to_string())),
                }
            }
        }

        impl From<StoredError> for Error {
            fn from(error: StoredError) -> Self {
                match error {
                    $(StoredError::$plain => Self::$plain,)*
                    $(StoredError::$sized(value) => Self::$sized(value),)*
                    StoredError::DnsError { rcode, info_code } => Self::DnsError { rcode, info_code },
                    StoredError::TlsAlertReceived { alert_id, alert_message } => {
                        Self::TlsAlertReceived { alert_id, alert_message }
                    }
                }
            }
        }
    };
}

errors! {
    plain: DnsTimeout DestinationNotFound DestinationUnavailable DestinationIpProhibited DestinationIpUnroutable
        ConnectionRefused ConnectionTerminated ConnectionTimeout ConnectionReadTimeout ConnectionWriteTimeout
        ConnectionLimitReached TlsProtocolError TlsCertificateError HttpRequestDenied HttpRequestLengthRequired
        HttpRequestMethodInvalid HttpRequestUriInvalid HttpRequestUriTooLong HttpResponseIncomplete HttpResponseTimeout
        HttpUpgradeFailed HttpProtocolError LoopDetected ConfigurationError;
    sized: HttpRequestBodySize(u64) HttpRequestHeaderSectionSize(u32) HttpRequestTrailerSectionSize(u32)
        HttpResponseHeaderSectionSize(u32) HttpResponseBodySize(u64) HttpResponseTrailerSectionSize(u32)
        HttpResponseTransferCoding(String) HttpResponseContentCoding(String) InternalError(String);
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// Journals keep these texts, so they never change.
    #[test]
    fn stored_answers_have_these_forms() {
        let memory = HostMemory::new(1 << 20, Arc::new(()));
        for text in [
            r#"{"answer":{"status":200,"headers":[["x-a","MQ=="],["x-a","Mg=="]],"body":"aGk="}}"#,
            r#"{"answer":{"status":200,"headers":[],"body":"","trailers":[["t","MQ=="]],"error":"http_response_incomplete"}}"#,
            r#"{"failed":{"http_request_body_size":7}}"#,
            r#"{"failed":{"dns_error":{"rcode":null,"info_code":null}}}"#,
            r#"{"failed":{"internal_error":"why"}}"#,
        ] {
            let whole = Whole::read(text).unwrap();
            assert_eq!(&*whole.text().unwrap(), text);
            let answer = whole.response(&memory).unwrap();
            let again = match answer {
                Ok(answer) => Whole::of(answer, &memory, 100).now_or_never().unwrap().unwrap(),
                Err(error) => Whole::failed(error),
            };
            assert_eq!(&*again.text().unwrap(), text);
        }
        assert_eq!(memory.now(), 0, "nothing is held any more");
        assert!(matches!(Whole::read("{}"), Err(JournalError::Fault(_))));
    }
}
