//! A host that is paused beyond its lease while its guest waits for a server. Another host runs the call again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::json;
use toolgate_tests::guests::illegal;
use toolgate_tests::host::Host;
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::parts::Part;

use crate::named::setup;
use crate::server;

/// How long the server waits for a request. Only hosts that hang reach it.
const PATIENCE: Duration = Duration::from_secs(90);

const TURNS: &str = "/v1/conversations/c/turns?wait_ms=60000";

/// A server whose responses the test sends.
struct Upstream {
    address: SocketAddr,
    requests: Receiver<TcpStream>,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, (sender, requests)) = (listener.local_addr().unwrap(), channel());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The head of a request ends with an empty line.
                let _ = BufReader::new(&stream).lines().map_while(Result::ok).find(String::is_empty);
                // The test may have ended.
                let _ = sender.send(stream);
            }
        });
        Self { address, requests }
    }

    fn request(&self) -> TcpStream {
        self.requests.recv_timeout(PATIENCE).unwrap()
    }
}

fn respond(mut request: TcpStream, text: &str) {
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}", text.len());
    request.write_all(format!("{head}\r\n\r\n{text}").as_bytes()).unwrap();
}

#[test]
fn paused_host_responds_with_no_result_that_is_not_stored() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let ((_, url), upstream) = (server::database(), Upstream::start());
    let at = upstream.address;
    let grant = format!("url = \"http://{at}/\"\nmethods = [\"GET\"]\nprivate = true");
    let grant = format!("[plugin.fetcher]\ncomponent = \"any\"\n[[plugin.fetcher.grants.http]]\n{grant}");
    let start = |name: &str, beside: Option<&Host>| {
        setup(&url, name, 10, &[], beside).component("fetcher", illegal("fetcher")).tables(&grant).start()
    };
    let mut a = start("a", None);
    let b = start("b", Some(&a));
    let arguments = json!({"requests": [{"authority": at.to_string(), "path": "/"}]});
    let body = json!({"calls": [{"id": "1", "tool": "fetch", "arguments": arguments}]});
    let (agent, text) = (a.agent.clone(), body.to_string());
    let waits =
        thread::spawn(move || agent.send("POST", TURNS, &[("content-type", "application/json")], text.as_bytes()));
    let first = upstream.request();
    a.pause();
    // The guest has its response as soon as its host goes on.
    respond(first, "first");
    // When the lease has ended, the other host runs the call.
    respond(upstream.request(), "second");
    let stored = b.agent.post(TURNS, &body).ok(200);
    let call = &stored["calls"][0];
    assert_eq!((outcomes(&stored), &call["attempt"]), (vec!["ok".to_owned()], &json!(2)), "{stored:#}");
    assert_eq!(call["content"]["result"][0]["body"], "second", "{stored:#}");
    a.resume();
    match waits.join().unwrap() {
        Ok(answer) if answer.status == 201 => {
            let answer = answer.json();
            let seen = &answer["calls"][0];
            assert!(seen["outcome"].is_null() || seen == call, "{answer:#}, and the store has {stored:#}");
        }
        Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text),
        // The host ended before it responded.
        Err(_) => {}
    }
    assert_eq!(a.wait(), Some(75), "it commits nothing until it is started again");
    a.start();
    for host in [&a, &b] {
        assert_eq!(host.agent.get(&path(&stored)).ok(200)["calls"][0], *call);
        let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
}
