//! Access of components in each language on the real host: the store, the configuration, a server on loopback, and
//! random numbers, which differ in each call.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use toolgate_tests::host::Host;
use toolgate_tests::http::outcomes;

/// A server with one response for all requests. It records heads and bodies.
pub(crate) struct Server {
    address: SocketAddr,
    heard: Receiver<(String, String)>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = tell.send(answer(&mut stream.unwrap()));
            }
        });
        Self { address, heard }
    }

    /// The grants of a plugin, as lines of a configuration.
    pub(crate) fn grants(&self, plugin: &str) -> String {
        format!(
            "[plugin.{plugin}]\ncomponent = \"any\"\ngrants.keyvalue = true\n\
             grants.config = {{ greeting = \"hello\", other = \"not wanted\" }}\n\
             grants.http = [{{ url = \"http://{}/\", methods = [\"POST\"], private = true }}]\n",
            self.address
        )
    }

    /// The requests of a language's plugin, as a manifest.
    pub(crate) fn wants(&self, language: &str) -> String {
        let more = if has_http(language) {
            format!(
                "\n[[wants.http]]\nurl = \"http://{}/\"\nmethods = [\"POST\"]\nwhy = \"tries a request\"\n",
                self.address
            )
        } else {
            String::new()
        };
        "[wants.keyvalue]\nwhy = \"counts the calls that were asked to stop and did\"\n\n\
         [[wants.config]]\nname = \"greeting\"\nwhy = \"tries the configuration\"\n"
            .to_owned()
            + &more
    }
}

/// Reads one request and answers it.
fn answer(stream: &mut TcpStream) -> (String, String) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    let said = "HTTP/1.1 201 Created\r\nx-answer: yes\r\ncontent-length: 7\r\nconnection: close\r\n\r\npong ü";
    stream.write_all(said.as_bytes()).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// Whether components of a language can send requests. Only QuickJS cannot.
fn has_http(language: &str) -> bool {
    language != "js"
}

/// Two calls of the component's tool `reach`, on a host that has it.
#[track_caller]
pub(crate) fn check(host: &Host, server: &Server, language: &str) {
    let mut draws = Vec::new();
    for count in 1..=2 {
        let url = format!("http://{}/a?b=c", server.address);
        let turn = host.agent.settled(&host.agent.call("reaching", "reach", json!({"url": url})));
        assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
        let mut result = turn["calls"][0]["content"]["result"].as_object().unwrap().clone();
        draws.push(result.remove("draws").unwrap().as_array().unwrap().clone());
        assert_eq!(Value::Object(result), expected(language, count));
        if has_http(language) {
            let (head, body) = server.heard.recv().unwrap();
            assert!(head.starts_with("POST /a?b=c HTTP/1.1\r\n") && head.contains("\r\nx-own: mine\r\n"), "{head}");
            let lengths = head.lines().filter(|line| line.to_ascii_lowercase().starts_with("content-length:"));
            assert_eq!(lengths.collect::<Vec<_>>(), ["content-length: 7"], "{head}");
            assert_eq!(body, "ping ü");
        }
    }
    no_format_is_checked(host);
    each_schema_has_its_draft(host, language);
    traceback_is_several_lines(host, language);
    assert!(!draws[0].is_empty());
    for (one, other) in draws[0].iter().zip(&draws[1]) {
        assert_ne!(one, other, "two calls have different random numbers");
    }
}

/// The SDKs of Python and Go log a traceback as one text.
#[track_caller]
fn traceback_is_several_lines(host: &Host, language: &str) {
    let expected = match language {
        "python" => ["RuntimeError: it broke", "in two lines"],
        "go" => ["panic: it broke", "in two lines"],
        _ => return,
    };
    let turn = host.agent.settled(&host.agent.call("crash", "hello_count", json!({"text": "crash"})));
    assert_eq!(outcomes(&turn), ["failed(tool_failed)"], "{turn:#}");
    let call = turn["calls"][0]["id"].as_str().unwrap();
    let log = host.agent.get(&format!("/v1/conversations/crash/calls/{call}/log")).ok(200);
    let lines = log["runs"][0]["lines"].as_array().unwrap();
    let lines: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert!(lines.windows(2).any(|pair| pair == expected), "{lines:#?}");
}

/// A `format` is a description in every language: models get it, and nobody checks arguments against it.
#[track_caller]
pub(crate) fn no_format_is_checked(host: &Host) {
    let tools = host.agent.get("/v1/tools").ok(200);
    let declared = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "hello_count").unwrap();
    assert_eq!(declared["parameters"]["properties"]["text"]["format"], "email", "{declared:#}");
    let turn = host.agent.settled(&host.agent.call("format", "hello_count", json!({"text": "no address"})));
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    assert_eq!(turn["calls"][0]["content"]["result"], 3);
}

/// Three tools have the same schema and name another draft. Python derives all schemas, which are of 2020-12.
#[track_caller]
fn each_schema_has_its_draft(host: &Host, language: &str) {
    if language == "python" {
        return;
    }
    let refused = "failed(invalid_arguments)";
    // In draft-07, a `$ref` replaces the keywords beside it. Only 2020-12 knows `prefixItems`.
    for (tool, [beside_ref, first_item]) in
        [("draft_07", ["ok"; 2]), ("draft_2019_09", [refused, "ok"]), ("draft_2020_12", [refused; 2])]
    {
        for (arguments, expected) in [(json!({"count": 9}), beside_ref), (json!({"pair": [1]}), first_item)] {
            let turn = host.agent.settled(&host.agent.call("drafts", tool, arguments));
            assert_eq!(outcomes(&turn), [expected], "{tool}: {turn:#}");
        }
    }
}

/// The expected result of the tool in its `count`-th call, without random numbers. `stopped` counts the calls that were
/// stopped before.
fn expected(language: &str, count: u32) -> Value {
    let mut expected = json!({
        "configured": ["hello", null, "hello"],
        "stored": [[1, "ü"], null, true, 2 * count],
        "keys": ["count", "kept", "stopped", "sum"],
        "count": count,
    });
    if has_http(language) {
        expected["answer"] = json!([201, "yes", "pong ü"]);
    }
    // The SDKs of Go and C cannot list the configuration.
    if !matches!(language, "go" | "c") {
        expected["all"] = json!(["greeting"]);
    }
    expected
}
