//! A server that carries out each request once, by its `Idempotency-Key`, and records what it carried out. A GET asks about it.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use serde_json::json;

/// A running server.
pub(crate) struct Recorder {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    effects: Vec<Effect>,
    /// The paths of GET requests.
    asked: Vec<String>,
    /// Whether it does not answer, and the connections of clients that wait.
    is_silent: bool,
    unanswered: Vec<TcpStream>,
}

/// A request that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effect {
    pub(crate) path: String,
    pub(crate) body: String,
    /// How often the request came.
    pub(crate) requests: usize,
    key: String,
}

impl Recorder {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port")?;
        let address = listener.local_addr().context("there is no free port")?;
        let seen = Arc::<Mutex<Seen>>::default();
        let recorded = seen.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                // A host that was killed sends no whole request, or reads no answer.
                let _ = answer(&mut stream, &recorded);
            }
        });
        Ok(Self { address, seen })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The requests that it carried out, in order.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        lock(&self.seen).effects.clone()
    }

    /// The paths of GET requests, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        lock(&self.seen).asked.clone()
    }

    /// From now on, it carries requests out and does not answer.
    pub(crate) fn fall_silent(&self) {
        lock(&self.seen).is_silent = true;
    }

    /// Answers new requests again, and closes the connections of the others.
    pub(crate) fn answer_again(&self) {
        let mut seen = lock(&self.seen);
        seen.is_silent = false;
        seen.unanswered.clear();
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(stream: &mut TcpStream, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let first = line(&mut reader)?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut is_chunked, mut key) = (0, false, String::new());
    loop {
        let line = line(&mut reader)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "transfer-encoding" => is_chunked = true,
            "idempotency-key" => key = value.to_owned(),
            _ => {}
        }
    }
    let body = if is_chunked { chunks(&mut reader)? } else { part(&mut reader, length)? };
    let body = String::from_utf8_lossy(&body).into_owned();
    let mut seen = lock(seen);
    let mut text = "done".to_owned();
    if method == "GET" {
        text = json!({"healthy": is_deployed(&seen.effects, &path)}).to_string();
        seen.asked.push(path);
    } else if let Some(effect) = seen.effects.iter_mut().find(|effect| effect.key == key) {
        effect.requests += 1;
    } else {
        seen.effects.push(Effect { path, body, requests: 1, key });
    }
    if seen.is_silent {
        seen.unanswered.push(stream.try_clone()?);
        return Ok(());
    }
    let length = text.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}")
}

/// Whether a POST to the beginning of this path carried out the version at its end.
fn is_deployed(effects: &[Effect], path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(collection, version)| {
        effects.iter().any(|effect| effect.path == collection && effect.body.contains(&format!("\"{version}\"")))
    })
}

/// A line without its end. A host that was killed does not send all of it.
fn line(reader: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| ErrorKind::UnexpectedEof.into())
}

fn part(reader: &mut BufReader<TcpStream>, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A body in chunks, each with its length in hexadecimal.
fn chunks(reader: &mut BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let length = usize::from_str_radix(&line(reader)?, 16).unwrap_or(0);
        body.extend(part(reader, length)?);
        // The end of its line.
        part(reader, 2)?;
        if length == 0 {
            return Ok(body);
        }
    }
}
