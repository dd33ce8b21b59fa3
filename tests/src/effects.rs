//! A server that carries out each `Idempotency-Key` once, and records its requests.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub key: String,
    pub authorization: String,
    pub body: String,
}

#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    /// The number of connections so far, and the number of the connection that is closed at once.
    connections: usize,
    closes: Option<usize>,
    /// The number of the connection whose request is carried out and never answered.
    holds: Option<usize>,
    /// The keys that were carried out, each with its answer.
    done: Vec<(String, String)>,
    /// The next requests are not carried out. Each gets the answer with this status and this `retry-after`.
    refusals: VecDeque<(u16, &'static str)>,
    /// The bodies that are refused, in the order in which their limits are lifted.
    limited: VecDeque<String>,
    /// Whether it does not answer, and the connections of clients that wait.
    is_silent: bool,
    unanswered: Vec<TcpStream>,
}

pub struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (address, seen) = (listener.local_addr().expect("an address"), Arc::<Mutex<Seen>>::default());
        let of_thread = seen.clone();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = answer(&mut stream, &of_thread);
            }
        });
        Self { address, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().expect("no thread panicked").requests.clone()
    }

    /// The keys that were carried out, each with its answer, in order.
    pub fn carried_out(&self) -> Vec<(String, String)> {
        self.seen.lock().expect("no thread panicked").done.clone()
    }

    /// Refuses the next requests, each with this status and this `retry-after`.
    pub fn refuse(&self, refusals: impl IntoIterator<Item = (u16, &'static str)>) {
        self.seen.lock().expect("no thread panicked").refusals.extend(refusals);
    }

    /// Refuses each request with one of these bodies, until its limit is lifted as often as it is named.
    pub fn limit(&self, bodies: impl IntoIterator<Item = String>) {
        self.seen.lock().expect("no thread panicked").limited.extend(bodies);
    }

    /// Lifts the first limit.
    pub fn lift(&self) {
        self.seen.lock().expect("no thread panicked").limited.pop_front();
    }

    /// From now on, it carries requests out and does not answer.
    pub fn fall_silent(&self) {
        self.seen.lock().expect("no thread panicked").is_silent = true;
    }

    /// Whether a client waits for an answer that does not come.
    pub fn is_waited_for(&self) -> bool {
        !self.seen.lock().expect("no thread panicked").unanswered.is_empty()
    }

    /// Answers new requests again, and closes the connections of the others.
    pub fn answer_again(&self) {
        let mut seen = self.seen.lock().expect("no thread panicked");
        seen.is_silent = false;
        seen.unanswered.clear();
    }

    /// Forgets everything, like a new server.
    pub fn reset(&self) {
        *self.seen.lock().expect("no thread panicked") = Seen::default();
    }

    /// Closes the connection of this number at once. The first one has the number 0.
    pub fn close(&self, connection: usize) {
        self.seen.lock().expect("no thread panicked").closes = Some(connection);
    }

    /// Carries out the request of the connection of this number, and never answers it.
    pub fn hold(&self, connection: usize) {
        self.seen.lock().expect("no thread panicked").holds = Some(connection);
    }
}

/// Answers a request. `None`: the client was killed before it had sent all of it, or the test lets it have no answer.
fn answer(stream: &mut TcpStream, seen: &Mutex<Seen>) -> Option<()> {
    let is_held = {
        let mut seen = seen.lock().expect("no thread panicked");
        let number = seen.connections;
        seen.connections += 1;
        if seen.closes == Some(number) {
            return None;
        }
        seen.holds == Some(number)
    };
    let head = until(stream, b"\r\n\r\n")?;
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let body = match header("content-length") {
        Some(length) => {
            let mut body = vec![0; length.parse().expect("a length")];
            stream.read_exact(&mut body).ok()?;
            String::from_utf8(body).expect("UTF-8")
        }
        None if header("transfer-encoding").is_some() => chunks(stream)?,
        None => String::new(),
    };
    let [key, authorization] = ["idempotency-key", "authorization"].map(|name| header(name).unwrap_or_default());
    let (head, text) = {
        let mut seen = seen.lock().expect("no thread panicked");
        let limit = seen.limited.contains(&body).then_some((429, "7"));
        let refusal = seen.refusals.pop_front().or(limit);
        let text = match (method.as_str(), path.as_str()) {
            _ if refusal.is_some() => "later".to_owned(),
            ("GET", "/large") => "x".repeat(64 << 10),
            ("GET", path) if path.starts_with("/deployments/") => r#"{"healthy":true}"#.to_owned(),
            ("GET", _) => seen.done.len().to_string(),
            _ => match seen.done.iter().find(|(done, _)| *done == key) {
                Some((_, text)) => text.clone(),
                None => {
                    let text = match path.as_str() {
                        "/size" => body.len().to_string(),
                        path if path.ends_with("/unseen") => format!("unseen: {}", seen.done.len() + 1),
                        _ => format!("{body}: {}", seen.done.len() + 1),
                    };
                    seen.done.push((key.clone(), text.clone()));
                    text
                }
            },
        };
        seen.requests.push(Request { method, path, key, authorization, body });
        if is_held || seen.is_silent {
            seen.unanswered.push(stream.try_clone().ok()?);
            return None;
        }
        let refused = |(status, after)| format!("{status} Later\r\nretry-after: {after}");
        (refusal.map_or_else(|| "200 OK".to_owned(), refused), text)
    };
    let reply = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
    // A client that was killed does not read it.
    stream.write_all(reply.as_bytes()).ok()?;
    stream.shutdown(Shutdown::Write).ok()?;
    std::io::copy(stream, &mut std::io::sink()).ok().map(drop)
}

/// The text that ends with these bytes.
fn until(stream: &mut TcpStream, end: &[u8]) -> Option<String> {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(end) {
        stream.read_exact(&mut byte).ok()?;
        text.push(byte[0]);
    }
    Some(String::from_utf8(text).expect("UTF-8"))
}

/// A body in chunks.
fn chunks(stream: &mut TcpStream) -> Option<String> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(until(stream, b"\r\n")?.trim(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).ok()?;
        if size == 0 {
            return Some(String::from_utf8(body).expect("UTF-8"));
        }
        body.extend_from_slice(&chunk[..size]);
    }
}
