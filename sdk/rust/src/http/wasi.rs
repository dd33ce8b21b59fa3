//! The network of a real call: wasi:http, interfaces `types` and `outgoing-handler`.

use super::{Error, Request, Response};

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; the documentation is in wit/")]
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        inline: "
            package toolgate:sdk-http;
            world requests {
                import wasi:http/types@0.2.12;
                import wasi:http/outgoing-handler@0.2.12;
            }
        ",
        world: "toolgate:sdk-http/requests",
        generate_all,
    });
}

use bindings::wasi::http::outgoing_handler::handle;
use bindings::wasi::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    Scheme,
};
use bindings::wasi::io::streams::StreamError;

/// The bytes of one read or write.
const PIECE: usize = 4 << 10;

pub(super) fn send(request: &Request) -> Result<Response, Error> {
    let outgoing = outgoing(request)?;
    let body = request.body.as_deref().map(|bytes| outgoing.body().map(|body| (body, bytes)));
    let body = body.transpose().map_err(|()| Error::Invalid("it can have no body".to_owned()))?;
    let pending = handle(outgoing, None).map_err(refused)?;
    if let Some((body, bytes)) = body {
        // A server may respond before it has read everything. Its response is more useful than the failed write.
        let _ = write(&body, bytes);
        let _ = OutgoingBody::finish(body, None);
    }
    read(wait(&pending)?)
}

fn outgoing(request: &Request) -> Result<OutgoingRequest, Error> {
    let invalid = |what: &str| Error::Invalid(format!("{what} of {} {}", request.method, request.url));
    let (scheme, rest) = request.url.split_once("://").ok_or_else(|| invalid("no scheme in the URL"))?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    let fields = Fields::new();
    for (name, value) in &request.headers {
        fields.append(name, value.as_bytes()).map_err(|error| Error::Invalid(format!("header {name}: {error:?}")))?;
    }
    // Sends the length, because not every server accepts chunked bodies.
    if let Some(body) = request.body.as_ref().filter(|_| !fields.has("content-length")) {
        let length = body.len().to_string();
        fields
            .append("content-length", length.as_bytes())
            .map_err(|error| invalid(&format!("the length ({error:?})")))?;
    }
    let outgoing = OutgoingRequest::new(fields);
    outgoing.set_method(&method(&request.method)).map_err(|()| invalid("the method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| invalid("the scheme"))?;
    outgoing.set_authority(Some(authority)).map_err(|()| invalid("the host"))?;
    outgoing.set_path_with_query(Some(&path)).map_err(|()| invalid("the path"))?;
    Ok(outgoing)
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "PATCH" => Method::Patch,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "CONNECT" => Method::Connect,
        other => Method::Other(other.to_owned()),
    }
}

fn write(body: &OutgoingBody, bytes: &[u8]) -> Result<(), StreamError> {
    let stream = body.write().map_err(|()| StreamError::Closed)?;
    bytes.chunks(PIECE).try_for_each(|piece| stream.blocking_write_and_flush(piece))
}

fn wait(pending: &FutureIncomingResponse) -> Result<IncomingResponse, Error> {
    pending.subscribe().block();
    match pending.get() {
        Some(Ok(answer)) => answer.map_err(refused),
        _ => Err(Error::Unreachable("the answer was taken before".to_owned())),
    }
}

fn read(answer: IncomingResponse) -> Result<Response, Error> {
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    let headers =
        answer.headers().entries().into_iter().map(|(name, value)| (name.to_lowercase(), text(value))).collect();
    let mut response = Response { status: answer.status(), headers, body: Vec::new() };
    let broken = |what: &str| Error::Unreachable(format!("the response broke off: {what}"));
    let body = answer.consume().map_err(|()| broken("it has no body"))?;
    {
        let stream = body.stream().map_err(|()| broken("its body cannot be read"))?;
        loop {
            match stream.blocking_read(PIECE as u64) {
                Ok(piece) => response.body.extend(piece),
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(error)) => return Err(broken(&error.to_debug_string())),
            }
        }
    }
    drop(IncomingBody::finish(body));
    Ok(response)
}

fn refused(error: ErrorCode) -> Error {
    match error {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
            Error::Denied("no grant allows it; the call's log names the missing grant (toolgate logs)".to_owned())
        }
        ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpRequestMethodInvalid => Error::Invalid(format!("{error:?}")),
        error => Error::Unreachable(format!("{error:?}")),
    }
}
