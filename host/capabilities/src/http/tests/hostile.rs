//! Servers that lie, stall and flood. The guest gets an error, and the host is not affected.

use super::server::{Script, Server, goes_on, pauses_after, says};
use super::*;

/// The guest's error from a server that does this, and the last line of its log.
fn failed(script: Script, change: impl FnOnce(&mut Limits)) -> (Error, String) {
    let server = Server::start(vec![script]);
    let mut world = Setup::at(server.address).limits(change).world();
    let error = world.fails(&format!("http://api.example.com:{}/", server.address.port()));
    (error, world.log().pop().unwrap_or_default())
}

fn brief(limits: &mut Limits) {
    limits.http_time = Span::from_millis(300);
}

fn small(limits: &mut Limits) {
    limits.http_received = 200_000;
}

#[test]
fn a_stalling_server_times_out() {
    for stalled in ["", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nx-slow: ", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"]
    {
        let (error, line) = failed(pauses_after(stalled), brief);
        assert!(matches!(error, Error::HttpResponseTimeout), "{stalled:?}: {error:?}");
        assert!(line.contains("`limits.http_ms`"), "{line}");
    }
}

#[test]
fn a_slow_server_gets_no_more_time_than_a_silent_one() {
    let drip: Script = Box::new(|stream| {
        use std::io::{Read as _, Write as _};
        let mut said = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        // Waits a little without a clock, for bytes that never come.
        let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(20)));
        while said.is_ok() {
            let _ = stream.read(&mut [0]);
            said = stream.write_all(b".");
        }
    });
    let (error, _) = failed(drip, brief);
    assert!(matches!(error, Error::HttpResponseTimeout), "{error:?}");
}

#[test]
fn a_flooding_server_is_cut_off_at_the_limit() {
    let ten_kib = "a".repeat(10 << 10);
    let floods = [
        goes_on("HTTP/1.1 200 OK\r\n\r\n", ten_kib.clone()),
        goes_on("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", format!("2800\r\n{ten_kib}\r\n")),
        goes_on("", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
    ];
    for flood in floods {
        let (error, line) = failed(flood, small);
        assert!(matches!(error, Error::HttpResponseBodySize(_)), "{error:?}");
        assert!(line.contains("`limits.http_received_bytes`"), "{line}");
    }
}

#[test]
fn response_bytes_of_a_call_are_added_up() {
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n{}", "a".repeat(60_000));
    let server = Server::start((0..4).map(|_| says(answer.clone())).collect());
    let mut world = Setup::at(server.address).limits(small).world();
    let url = format!("http://api.example.com:{}/", server.address.port());
    for _ in 0..3 {
        assert_eq!(world.get(&url).body.len(), 60_000);
    }
    assert!(matches!(world.fails(&url), Error::HttpResponseBodySize(_)));
}

#[test]
fn a_compression_bomb_fails_its_response() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 50 << 20]).expect("to memory");
    let bomb = encoder.finish().expect("to memory");
    assert!(bomb.len() < 100_000);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    let server = Server::start(vec![says([answer.as_bytes(), &bomb].concat())]);
    let mut world = Setup::at(server.address).limits(small).world();
    let url = format!("http://api.example.com:{}/", server.address.port());
    let reply = world.send(get(&url)).expect("a head");
    assert!(matches!(reply.end, Err(Error::HttpResponseBodySize(_))), "{:?}", reply.end);
    assert!(reply.body.len() <= 200_000 + (290 << 10), "{}", reply.body.len());
}

#[test]
fn size_and_fields_of_a_head_are_limited() {
    let large = format!("HTTP/1.1 200 OK\r\nx-large: {}\r\n\r\n", "a".repeat(70 << 10));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-many: 1\r\n".repeat(300));
    let endless = goes_on("HTTP/1.1 200 OK\r\n", "x-endless: 1\r\n");
    for script in [says(large), says(many), endless] {
        let (error, _) = failed(script, |_| {});
        assert!(matches!(error, Error::HttpResponseHeaderSectionSize(_)), "{error:?}");
    }
}

#[test]
fn a_truncated_response_is_an_error() {
    let cut = [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n",
        "HTTP/1.1 200 OK\r\nx-half",
        "",
    ];
    for answer in cut {
        let (error, _) = failed(says(answer), |_| {});
        assert!(matches!(error, Error::HttpResponseIncomplete), "{answer:?}: {error:?}");
    }
}

#[test]
fn a_response_that_is_not_http_is_refused() {
    let wrong = [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        "<html>an answer of HTTP/0.9</html>\r\n\r\n",
    ];
    for answer in wrong {
        let (error, _) = failed(says(answer), |_| {});
        assert!(matches!(error, Error::HttpProtocolError), "{answer:?}: {error:?}");
    }
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    assert!(matches!(failed(says(upgrade), |_| {}).0, Error::HttpUpgradeFailed));
    let unpacked = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\nnot packed";
    assert!(matches!(failed(says(unpacked), |_| {}).0, Error::HttpResponseContentCoding(_)));
}

#[test]
fn an_unread_response_is_charged_until_it_is_dropped() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let server = Server::start((0..2).map(|_| says(answer)).collect());
    let mut world = Setup::at(server.address).world();
    let url = format!("http://api.example.com:{}/", server.address.port());
    for reads in [true, false] {
        let sending = world.session.hooks().send_request(get(&url), None, Box::new(ready(Ok(()))));
        let (response, _) = world.runtime.block_on(Box::into_pin(sending)).expect("an answer");
        while world.runtime.metrics().num_alive_tasks() > 0 {
            world.runtime.block_on(tokio::task::yield_now());
        }
        assert_eq!(world.memory.now(), 256 << 10, "the exchange has ended, and its answer is still here");
        let mut body = response.into_body();
        if reads {
            while let Some(frame) = world.runtime.block_on(body.frame()) {
                frame.expect("the answer is whole");
            }
            assert_eq!(world.memory.now(), 0, "nothing is left to be read");
        }
        drop(body);
        assert_eq!(world.memory.now(), 0);
    }
}
