//! Webhooks of the real host to a real receiver: the signature, a kill before the acknowledgement, and forbidden
//! addresses.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_tests::browser::Browser;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{path, suspension_of};
use toolgate_tests::steps::waiting;
use webhook::SigningSecret;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A received message, and its open connection.
struct Arrived {
    head: Vec<String>,
    body: String,
    answer: TcpStream,
}

impl Arrived {
    fn header(&self, name: &str) -> &str {
        let of =
            |line: &'_ String| line.split_once(": ").filter(|(found, _)| found.eq_ignore_ascii_case(name)).is_some();
        self.head.iter().find(|line| of(line)).unwrap().split_once(": ").unwrap().1
    }

    fn answer(mut self, status: &str) {
        write!(self.answer, "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok").unwrap();
    }
}

struct Receiver(TcpListener);

impl Receiver {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// The next message. Fails only if the host hangs.
    fn next(&self) -> Arrived {
        let (stream, _) = self.0.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let head: Vec<String> =
            reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        let arrived = Arrived { head, body: String::new(), answer: stream };
        let mut body = vec![0; arrived.header("content-length").parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        Arrived { body: String::from_utf8(body).unwrap(), ..arrived }
    }
}

fn host(url: &str, more: &str) -> Host {
    let table = format!("[[webhook]]\nname = \"pager\"\nurl = \"{url}\"\nsecret_file = \"pager.secret\"\n{more}");
    let mut host = Setup::with(&["ask"]).tables(&table).prepare();
    std::fs::write(host.folder().join("pager.secret"), format!("{SECRET}\n")).unwrap();
    host.start();
    host
}

/// One delivery, when it has this state and number of attempts.
fn delivery(host: &Host, suspension: &str, event: &str, state: &str, attempts: u32) -> Value {
    loop {
        let read = host.approver.get(&format!("/v1/suspensions/{suspension}")).ok(200);
        let is = |row: &&Value| row["event"] == event && row["state"] == state && row["attempts"] == attempts;
        match read["deliveries"].as_array().into_iter().flatten().find(is) {
            Some(row) => return row.clone(),
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn unacknowledged_message_is_sent_again_after_a_kill() {
    let receiver = Receiver::new();
    let mut host = host(
        &format!("http://{}/hook?key=1", receiver.address()),
        "private = true\nlink = { principal = \"alice\", base = \"https://gate.test/\" }",
    );
    let suspension = suspension_of(&host.agent.call("c", "ask_user", json!({"question": "Tea?"})));
    let first = receiver.next();
    host.kill();
    let Arrived { head, body: sent, answer } = first;
    drop(answer);
    host.start();
    let second = receiver.next();
    assert_eq!(head[0], "POST /hook?key=1 HTTP/1.1");
    assert_eq!(second.header("webhook-id"), format!("{suspension}-opened"));
    let id = |head: &[String]| head.iter().find(|line| line.starts_with("webhook-id: ")).unwrap().clone();
    assert_eq!(id(&head), id(&second.head), "the same message, by its id");

    let (id, timestamp) = (second.header("webhook-id"), second.header("webhook-timestamp").parse().unwrap());
    let signature = SigningSecret::new(SECRET).unwrap().sign(id, timestamp, &second.body);
    assert_eq!(second.header("webhook-signature"), signature);
    let body: Value = serde_json::from_str(&second.body).unwrap();
    assert_eq!(
        (&body["type"], &body["suspension"]["prompt"]),
        (&json!("suspension.opened"), &json!("The agent asks: Tea?"))
    );
    assert_eq!(body["suspension"].get("arguments"), None);

    let link = body["url"].as_str().unwrap().strip_prefix("https://gate.test").unwrap();
    assert!(link.starts_with("/link/"), "{link}");
    let before: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(before["url"], body["url"], "a repeated message carries the same link");
    let opened = host.stranger().post("/v1/session/link", &json!({"link": link})).ok(200);
    assert_eq!((&opened["principal"], &opened["only"]), (&json!("alice"), &json!(suspension)));

    host.stranger().post("/v1/session/link", &json!({"link": link})).problem(409, "link-used");
    let made = host.admin.get("/v1/audit?action=link.made").ok(200);
    assert_eq!((&made["entries"][0]["webhook"], &made["entries"][0]["to"]), (&json!("pager"), &json!("alice")));
    assert_eq!(made["entries"].as_array().unwrap().len(), 1, "{made:#}");

    second.answer("204 No Content");
    let row = delivery(&host, &suspension, "opened", "delivered", 1);
    assert_eq!((&row["webhook"], &row["attempts"], &row["last_status"]), (&json!("pager"), &json!(1), &json!(204)));
    let seen = host.agent.get(&format!("/v1/suspensions/{suspension}")).ok(200);
    assert_eq!(seen.get("deliveries"), None, "a caller does not see the operator's webhooks");

    let answered = host.approver.resolve(&suspension, json!({"decision": "decline"}));
    assert_eq!(answered.status, 200, "{}", answered.text);
    let closed = receiver.next();
    assert_eq!(closed.header("webhook-id"), format!("{suspension}-closed"));
    closed.answer("200 OK");
    delivery(&host, &suspension, "closed", "delivered", 1);
}

#[test]
fn message_about_an_approval_in_the_middle_has_a_link_for_it() {
    let receiver = Receiver::new();
    let table = format!(
        "[[webhook]]\nname = \"pager\"\nurl = \"http://{}/\"\nsecret_file = \"pager.secret\"\nprivate = true\n\
         kinds = [\"approval\"]\nlink = {{ principal = \"alice\", base = \"https://gate.test\" }}",
        receiver.address()
    );
    let mut host = Setup::with(&["rollout"]).tables(&table).prepare();
    std::fs::write(host.folder().join("pager.secret"), SECRET).unwrap();
    host.start();
    let turn = host.agent.call("c", "roll_out", json!({"version": "1.4.2", "settles_s": 1}));
    let asked = suspension_of(&turn);
    let place = json!({"decision": "answer", "data": {"environment": "live"}});
    assert_eq!(host.approver.resolve(&asked, place).status, 200);
    let opened = receiver.next();
    let body: Value = serde_json::from_str(&opened.body).unwrap();
    let proposed = waiting(&host, &turn, 2)["suspension"].clone();
    assert_eq!((&body["suspension"]["kind"], &body["suspension"]["suspension"]), (&json!("approval"), &proposed));
    let link = body["url"].as_str().unwrap().strip_prefix("https://gate.test").unwrap();
    let session = Browser::of(host.stranger(), &host.stranger().post("/v1/session/link", &json!({"link": link})));
    let approved = session.resolve(proposed.as_str().unwrap(), &json!({"decision": "approve"}));
    assert_eq!(approved.ok(200)["state"], "approve");
    opened.answer("204 No Content");
    let closed = receiver.next();
    assert_eq!(closed.header("webhook-id"), format!("{}-closed", proposed.as_str().unwrap()));
    closed.answer("204 No Content");
    let last = waiting(&host, &turn, 4);
    assert_eq!(host.approver.resolve(last["suspension"].as_str().unwrap(), json!({"decision": "healthy"})).status, 200);
    assert_eq!(host.agent.settled(&turn)["calls"][0]["content"]["result"]["state"], "done");
}

#[test]
fn message_about_an_external_wait_has_an_address_for_it() {
    let receiver = Receiver::new();
    let table = format!(
        "[[webhook]]\nname = \"pager\"\nurl = \"http://{}/\"\nsecret_file = \"pager.secret\"\nprivate = true\n\
         kinds = [\"external\"]\nlink = {{ principal = \"alice\", base = \"https://gate.test\" }}",
        receiver.address()
    );
    let mut host = Setup::with(&["rollout"]).tables(&table).prepare();
    std::fs::write(host.folder().join("pager.secret"), SECRET).unwrap();
    host.start();
    let arguments = json!({"version": "1.4.2", "settles_s": 1, "signal": "health"});
    let turn = host.agent.call("c", "roll_out", arguments);
    let answers = [json!({"decision": "answer", "data": {"environment": "live"}}), json!({"decision": "approve"})];
    for (answer, step) in answers.into_iter().zip(1..) {
        let asked = host.agent.until(&path(&turn), |answer| {
            let turn: Value = serde_json::from_str(&answer.text).unwrap();
            turn["pending"].as_array().unwrap().iter().find(|open| open["step"] == step).cloned()
        });
        assert_eq!(host.approver.resolve(asked["suspension"].as_str().unwrap(), answer).status, 200);
    }
    let opened = receiver.next();
    let body: Value = serde_json::from_str(&opened.body).unwrap();
    let wait = &body["suspension"];
    assert_eq!(
        (&wait["kind"], &wait["signal"], &wait["metadata"]["version"]),
        (&json!("external"), &json!("health"), &json!("1.4.2"))
    );
    let link = body["url"].as_str().unwrap().strip_prefix("https://gate.test").unwrap();
    assert!(link.starts_with("/v1/links/"), "{link}");
    assert_eq!(host.stranger().post(link, &json!({"healthy": true})).ok(200)["state"], "result");
    assert_eq!(host.agent.settled(&turn)["calls"][0]["content"]["result"]["state"], "done");
    opened.answer("204 No Content");
}

#[test]
fn redirects_and_private_addresses_are_refused() {
    let receiver = Receiver::new();
    let open = host(&format!("http://{}/", receiver.address()), "private = true");
    let suspension = suspension_of(&open.agent.call("c", "ask_user", json!({"question": "Tea?"})));
    let mut arrived = receiver.next();
    let elsewhere = Receiver::new();
    let location = format!("location: http://{}/\r\ncontent-length: 0", elsewhere.address());
    write!(arrived.answer, "HTTP/1.1 307 Temporary Redirect\r\n{location}\r\n\r\n").unwrap();
    let row = delivery(&open, &suspension, "opened", "pending", 1);
    assert_eq!((&row["last_status"], &row["last_error"]), (&json!(307), &json!("redirects are not followed")));
    elsewhere.0.set_nonblocking(true).unwrap();
    assert!(elsewhere.0.accept().is_err(), "nothing came");

    let closed = host(&format!("https://{}/", receiver.address()), "");
    let suspension = suspension_of(&closed.agent.call("c", "ask_user", json!({"question": "Tea?"})));
    let row = delivery(&closed, &suspension, "opened", "pending", 1);
    let why = "127.0.0.1 is not a public address; `private = true` allows those of your own network";
    assert_eq!((row.get("last_status"), &row["last_error"]), (None, &json!(why)));
    receiver.0.set_nonblocking(true).unwrap();
    assert!(receiver.0.accept().is_err(), "nothing came");
}
