//! Legal declarations and one tool that sends any given requests over wasi:http, valid or not, and returns their
//! results. It changes nothing, so that a test can try every form of a URL or a header.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_sdk::prelude::*;

#[allow(missing_docs, clippy::all, reason = "generated; the documentation is in wit/")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/v0.1",
        inline: "
            package toolgate:fetcher;
            world fetcher {
                import wasi:http/types@0.2.12;
                import wasi:http/outgoing-handler@0.2.12;
            }
        ",
        world: "toolgate:fetcher/fetcher",
        generate_all,
    });
}

use bindings::wasi::http::outgoing_handler::handle;
use bindings::wasi::http::types::{
    Fields, FutureIncomingResponse, IncomingBody, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use bindings::wasi::io::streams::StreamError;

/// Requests. All of them are sent before the tool waits for an answer.
#[derive(Deserialize, JsonSchema)]
struct Requests {
    requests: Vec<Request>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct Request {
    method: String,
    scheme: String,
    authority: Option<String>,
    path: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<String>,
    /// How often the body is written.
    repeat: u32,
    /// Whether the body is left without an end.
    unfinished: bool,
    /// Fields after the body.
    trailers: Vec<(String, String)>,
    /// Whether the answer is dropped unread.
    unread: bool,
    /// The number of copies of the answer's fields to keep.
    copies: u32,
    /// Milliseconds in which the server must begin its answer.
    first_byte_ms: Option<u64>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            scheme: "http".into(),
            authority: None,
            path: None,
            headers: Vec::new(),
            body: None,
            repeat: 1,
            unfinished: false,
            trailers: Vec::new(),
            unread: false,
            copies: 0,
            first_byte_ms: None,
        }
    }
}

/// The result of a request: an answer, or the place and kind of its failure.
#[derive(Serialize, JsonSchema, Default)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
    body_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

toolgate_sdk::plugin! {
    Tool::server("fetch", "Sends requests.", fetch),
    Tool::server("fetch_durably", "Sends requests, and waits after them.", |requests: Requests, call: &Call| {
        let answers = fetch(requests, call)?;
        call.sleep(Duration::from_secs(1));
        Ok(answers)
    })
    .durable(),
}

fn fetch(Requests { requests }: Requests, _: &Call) -> Result<Vec<Answer>, Failure> {
    // The requests are kept until all have been answered.
    let pending: Vec<_> = requests.iter().map(|request| (request, send(request))).collect();
    Ok(pending.into_iter().map(|(request, sent)| answer(request, sent)).collect())
}

fn send(request: &Request) -> Result<FutureIncomingResponse, String> {
    let fields = fields(&request.headers)?;
    let outgoing = OutgoingRequest::new(fields);
    let method = match request.method.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        other => Method::Other(other.to_owned()),
    };
    outgoing.set_method(&method).map_err(|()| "set-method")?;
    let scheme = match request.scheme.as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    outgoing.set_scheme(Some(&scheme)).map_err(|()| "set-scheme")?;
    outgoing.set_authority(request.authority.as_deref()).map_err(|()| "set-authority")?;
    outgoing.set_path_with_query(request.path.as_deref()).map_err(|()| "set-path")?;
    let body = request.body.is_some().then(|| outgoing.body()).transpose().map_err(|()| "body")?;
    let options = RequestOptions::new();
    options.set_first_byte_timeout(request.first_byte_ms.map(|ms| ms * 1_000_000)).map_err(|()| "options")?;
    let sent = handle(outgoing, Some(options)).map_err(|error| format!("{error:?}"))?;
    if let Some(body) = body {
        // A server may answer before it has read everything. The answer is more useful than the error of the closed
        // stream.
        let _ = write(&body, request);
        if request.unfinished {
            drop(body);
        } else {
            let trailers = (!request.trailers.is_empty()).then(|| self::fields(&request.trailers)).transpose()?;
            OutgoingBody::finish(body, trailers).map_err(|error| format!("finish: {error:?}"))?;
        }
    }
    Ok(sent)
}

fn fields(entries: &[(String, String)]) -> Result<Fields, String> {
    let fields = Fields::new();
    for (name, value) in entries {
        fields.append(name, value.as_bytes()).map_err(|error| format!("{name}: {error:?}"))?;
    }
    Ok(fields)
}

fn write(body: &OutgoingBody, request: &Request) -> Result<(), StreamError> {
    let stream = body.write().map_err(|()| StreamError::Closed)?;
    let text = request.body.as_deref().unwrap_or_default().as_bytes();
    for _ in 0..request.repeat {
        for piece in text.chunks(4096) {
            stream.blocking_write_and_flush(piece)?;
        }
    }
    Ok(())
}

fn answer(request: &Request, sent: Result<FutureIncomingResponse, String>) -> Answer {
    let future = match sent {
        Ok(future) => future,
        Err(error) => return Answer { error: Some(error), ..Answer::default() },
    };
    future.subscribe().block();
    let response = match future.get() {
        Some(Ok(Ok(response))) => response,
        Some(Ok(Err(error))) => return Answer { error: Some(format!("{error:?}")), ..Answer::default() },
        other => return Answer { error: Some(format!("{other:?}")), ..Answer::default() },
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let copies: Vec<_> = (0..request.copies).map(|_| response.headers().clone()).collect();
    for copy in &copies {
        // A changed copy is not shared.
        copy.delete("x-own").ok();
    }
    let headers = response.headers().entries().into_iter().map(|(name, value)| (name, text(value))).collect();
    let mut answer = Answer { status: Some(response.status()), headers, ..Answer::default() };
    if request.unread {
        return answer;
    }
    let Ok(body) = response.consume() else { return answer };
    let mut kept = Vec::new();
    {
        let Ok(stream) = body.stream() else { return answer };
        loop {
            match stream.blocking_read(64 << 10) {
                Ok(bytes) => {
                    answer.body_bytes += bytes.len();
                    kept.extend(bytes.into_iter().take(4096_usize.saturating_sub(kept.len())));
                }
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(error)) => {
                    answer.error = Some(format!("body: {}", error.to_debug_string()));
                    break;
                }
            }
        }
    }
    answer.body = text(kept);
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    if let Some(Ok(Ok(Some(fields)))) = trailers.get() {
        answer
            .headers
            .extend(fields.entries().into_iter().map(|(name, value)| (format!("trailer {name}"), text(value))));
    }
    answer
}
