//! A server on loopback that sends exactly the bytes that a test gives, and records its requests.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A server with one script for each connection.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    heard: Receiver<String>,
}

/// The behaviour of a server on one connection after it has read the head of a request.
pub(super) type Script = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// Sends this and closes.
pub(super) fn says(answer: impl Into<Vec<u8>>) -> Script {
    let answer = answer.into();
    Box::new(move |stream| drop(stream.write_all(&answer)))
}

/// Sends this repeatedly until the client closes.
pub(super) fn goes_on(begin: impl Into<Vec<u8>>, again: impl Into<Vec<u8>>) -> Script {
    let (begin, again) = (begin.into(), again.into());
    Box::new(move |stream| {
        let mut said = stream.write_all(&begin);
        while said.is_ok() {
            said = stream.write_all(&again);
        }
    })
}

/// Sends this and then nothing, until the client closes.
pub(super) fn pauses_after(answer: impl Into<Vec<u8>>) -> Script {
    let answer = answer.into();
    Box::new(move |stream| {
        let _ = stream.write_all(&answer);
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

impl Server {
    /// Starts a server with a thread for each connection.
    pub(super) fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let (tell, heard) = channel();
        thread::spawn(move || {
            for script in scripts {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let tell = tell.clone();
                thread::spawn(move || {
                    let head = head(&mut stream);
                    let _ = tell.send(head);
                    script(&mut stream);
                    // Closing with unread input could cut off the response.
                    let _ = stream.shutdown(Shutdown::Write);
                    let _ = std::io::copy(&mut stream, &mut std::io::sink());
                });
            }
        });
        Self { address, heard }
    }

    /// The head of the next request, as it was sent.
    pub(super) fn heard(&self) -> String {
        self.heard.recv().expect("a request")
    }

    /// The number of requests that no test has read.
    pub(super) fn unheard(&self) -> usize {
        self.heard.try_iter().count()
    }
}

/// Reads up to the empty line.
pub(super) fn head(stream: &mut impl std::io::Read) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("a head is ASCII")
}
