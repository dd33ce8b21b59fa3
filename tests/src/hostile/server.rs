//! A server of the attacker, for guests with network access. The path of a request says how the server misbehaves.

use std::io::{Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use flate2::{Compression, write::GzEncoder};

/// This word in a case is replaced by the server's address.
const WORD: &str = "$server";

/// The time between two bytes of a response that drips.
const DRIP: Duration = Duration::from_millis(20);

/// Zeroes in the compressed response.
const UNPACKED: usize = 50 << 20;

/// The server. It runs until the process ends.
pub(super) struct Server(SocketAddr);

impl Server {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that leaves is what the attacker expects.
                std::thread::spawn(move || drop(answer(stream)));
            }
        });
        Ok(Self(address))
    }

    /// The text with the server's address.
    pub(super) fn filled(&self, text: &str) -> String {
        text.replace(WORD, &self.0.to_string())
    }
}

/// Reads the head of a request and misbehaves.
fn answer(mut stream: TcpStream) -> Result<()> {
    let (mut head, mut block) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut block)? {
            0 => return Ok(()),
            read => head.extend_from_slice(&block[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path.split(['/', '?']).nth(1).unwrap_or_default() {
        "drip" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            stream.set_read_timeout(Some(DRIP))?;
            loop {
                // Waits for bytes that never come.
                let _ = stream.read(&mut block);
                stream.write_all(b".")?;
            }
        }
        "endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            loop {
                stream.write_all(&[b'a'; 10 << 10])?;
            }
        }
        "bomb" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&vec![0; UNPACKED])?;
            let packed = encoder.finish()?;
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len())?;
            stream.write_all(&packed)
        }
        "inward" => stream
            .write_all(b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n"),
        "echo" => {
            let body = issues(&head);
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nx-echo: {}\r\ncontent-length: {}\r\n\r\n{body}",
                token(&head),
                body.len()
            )
        }
        "plain" => {
            let body = forms(&head);
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        }
        "pieces" => {
            let body = issues(&head);
            write!(stream, "HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        }
        // Answers nothing until the client leaves.
        _ => stream.read(&mut block).map(|_| ()),
    }
}

/// The credentials of a request.
fn token(head: &str) -> &str {
    head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default()
}

/// The credentials in a list of issues, as the plugin `forge` expects one.
fn issues(head: &str) -> String {
    serde_json::json!([{"number": 1, "title": forms(head), "state": "open", "html_url": "u"}]).to_string()
}

/// The credentials in plain, in hexadecimal digits, and escaped as in a URL.
fn forms(head: &str) -> String {
    let token = token(head);
    let digits = |before: &str| token.bytes().map(|byte| format!("{before}{byte:02x}")).collect::<String>();
    format!("{token} {} {}", digits(""), digits("%"))
}
