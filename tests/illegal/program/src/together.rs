//! Requests and a timer that one poll waits for. The SDK sends one request after the other.

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_sdk::prelude::*;

#[allow(missing_docs, clippy::all, reason = "generated; the documentation is in wit/")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/v0.1",
        inline: "
            package toolgate:program;
            world program {
                import wasi:clocks/monotonic-clock@0.2.12;
                import wasi:http/types@0.2.12;
                import wasi:http/outgoing-handler@0.2.12;
                import wasi:io/poll@0.2.12;
            }
        ",
        world: "toolgate:program/program",
        generate_all,
    });
}

use bindings::wasi::clocks::monotonic_clock::subscribe_duration;
use bindings::wasi::http::outgoing_handler::handle;
use bindings::wasi::http::types::{Fields, FutureIncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme};
use bindings::wasi::io::poll::{Pollable, poll};
use bindings::wasi::io::streams::StreamError;

#[derive(Deserialize, JsonSchema)]
pub struct Post {
    authority: String,
    path: String,
    body: String,
}

/// Something that becomes ready.
enum Awaited {
    Timer,
    Answer(FutureIncomingResponse),
}

pub fn carry_out(posts: &[Post], timer: Option<u64>) -> Result<Vec<String>, Failure> {
    let mut open: Vec<(Pollable, Awaited)> = Vec::new();
    open.extend(timer.map(|ms| (subscribe_duration(ms * 1_000_000), Awaited::Timer)));
    for post in posts {
        let answer = send(post).map_err(Failure::failed)?;
        open.push((answer.subscribe(), Awaited::Answer(answer)));
    }
    let mut ended = Vec::new();
    while !open.is_empty() {
        let ready = poll(&open.iter().map(|(pollable, _)| pollable).collect::<Vec<_>>());
        // From the last one, so that the numbers of the others stay.
        let mut taken: Vec<_> = ready.iter().rev().map(|index| open.remove(*index as usize)).collect();
        taken.reverse();
        for (pollable, awaited) in taken {
            drop(pollable);
            ended.push(match awaited {
                Awaited::Timer => "timer".to_owned(),
                Awaited::Answer(answer) => read(&answer).map_err(Failure::failed)?,
            });
        }
    }
    Ok(ended)
}

fn send(post: &Post) -> Result<FutureIncomingResponse, String> {
    let request = OutgoingRequest::new(Fields::new());
    request.set_method(&Method::Post).map_err(|()| "set-method")?;
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| "set-scheme")?;
    request.set_authority(Some(&post.authority)).map_err(|()| "set-authority")?;
    request.set_path_with_query(Some(&post.path)).map_err(|()| "set-path")?;
    let body = request.body().map_err(|()| "body")?;
    let answer = handle(request, None).map_err(|error| format!("{error:?}"))?;
    let stream = body.write().map_err(|()| "write")?;
    stream.blocking_write_and_flush(post.body.as_bytes()).map_err(|error| format!("{error:?}"))?;
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|error| format!("{error:?}"))?;
    Ok(answer)
}

/// The status and the text of an answer.
fn read(answer: &FutureIncomingResponse) -> Result<String, String> {
    let response = match answer.get() {
        Some(Ok(Ok(response))) => response,
        other => return Err(format!("{other:?}")),
    };
    let body = response.consume().map_err(|()| "consume")?;
    let stream = body.stream().map_err(|()| "stream")?;
    let mut text = Vec::new();
    loop {
        match stream.blocking_read(4_096) {
            Ok(bytes) => text.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(error) => return Err(format!("{error:?}")),
        }
    }
    Ok(format!("{} {}", response.status(), String::from_utf8_lossy(&text)))
}
