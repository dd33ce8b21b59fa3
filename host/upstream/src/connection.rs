//! One connection to a server: requests with their answers, and bounds on everything that the server sends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dispatch::ports::Clock;
use domain::{PluginName, Span};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::child::{Pipes, Process};
use crate::message::{self, Answer, Incoming};
use crate::reading::{Lines, NoLine};
use crate::settings::{Program, Redact};
use crate::stderr;

/// The messages that can wait until the server reads them.
const QUEUE: usize = 64;

/// The messages that a server can send between two answers: reports, its own requests, answers to requests that have ended.
const MAX_UNASKED: u32 = 10_000;

/// Why a request has no answer. The text continues a sentence about the server.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The server has not seen it.
    NotSent(String),
    /// The server may have carried it out.
    Unknown(String),
    OutOfTime,
}

/// Ends the process when it is dropped.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<String>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU64,
    pending: Mutex<Pending>,
    /// Whether the server said that its tools have changed.
    changed: AtomicBool,
    /// Whether a request got no answer in time.
    silent: AtomicBool,
}

/// The requests without an answer, until the connection has ended.
#[derive(Default)]
struct Pending {
    requests: HashMap<u64, oneshot::Sender<Answer>>,
    ended: Option<String>,
}

impl Connection {
    /// Starts a program and its connection.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn start(
        program: &Program,
        max: usize,
        plugin: &PluginName,
        redact: &Redact,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let (process, Pipes { input, output, error }) =
            Process::start(program).map_err(|error| format!("could not be started: {error}"))?;
        let mut connection = Self::over(output, input, max, Some(process));
        let logging = stderr::log(error, plugin.clone(), redact.clone(), clock.clone());
        connection.tasks.push(tokio::spawn(logging));
        Ok(connection)
    }

    /// A connection over two pipes. `process` ends with it.
    pub(crate) fn over(
        from: impl AsyncRead + Unpin + Send + 'static,
        to: impl AsyncWrite + Unpin + Send + 'static,
        max: usize,
        process: Option<Process>,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let reading = tokio::spawn(read(Lines::new(from, max), shared.clone(), outgoing.clone(), process));
        let writing = tokio::spawn(write(to, queue));
        Self { shared, outgoing, tasks: vec![reading, writing] }
    }

    /// Why it has ended.
    pub(crate) fn ended(&self) -> Option<String> {
        let ended = self.shared.pending().ended.clone();
        ended.or_else(|| self.outgoing.is_closed().then(|| "reads no more messages".to_owned()))
    }

    /// Whether the server said since the last time that its tools have changed.
    pub(crate) fn take_changed(&self) -> bool {
        self.shared.changed.swap(false, Ordering::AcqRel)
    }

    /// Whether a request got no answer in time, and nothing came since then.
    pub(crate) fn is_silent(&self) -> bool {
        self.shared.silent.load(Ordering::Acquire)
    }

    /// Sends a notification, as far as the queue has room. If the connection has ended, the next request says so.
    pub(crate) fn notify(&self, method: &str, params: &str) {
        let _ = self.outgoing.try_send(message::notification(method, params));
    }

    /// Sends a request and waits for its answer. If the future is dropped, the server gets a cancellation.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub(crate) async fn request(&self, method: &str, params: &str, at_most: Span) -> Result<Answer, NoAnswer> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut pending = self.shared.pending();
            if let Some(why) = &pending.ended {
                return Err(NoAnswer::NotSent(why.clone()));
            }
            pending.requests.insert(id, sender);
        }
        let mut waiting = Waiting { connection: self, id, is_sent: false };
        let exchange = async {
            let text = message::request(id, method, params);
            let place = self.outgoing.reserve().await.map_err(|_| NoAnswer::NotSent(self.why()))?;
            waiting.is_sent = true;
            place.send(text);
            receiver.await.map_err(|_| NoAnswer::Unknown(self.why()))
        };
        let answered = tokio::time::timeout(Duration::from_millis(at_most.millis()), exchange).await;
        match answered {
            Ok(Ok(answer)) => {
                waiting.is_sent = false;
                Ok(answer)
            }
            Ok(Err(none)) => Err(none),
            Err(_) => {
                self.shared.silent.store(true, Ordering::Release);
                Err(if waiting.is_sent {
                    NoAnswer::OutOfTime
                } else {
                    NoAnswer::NotSent("reads no message".to_owned())
                })
            }
        }
    }

    fn why(&self) -> String {
        self.ended().unwrap_or_else(|| "has ended".to_owned())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end("was stopped");
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: impl Into<String>) {
        let mut pending = self.pending();
        pending.ended.get_or_insert(why.into());
        pending.requests.clear();
    }
}

/// A request without an answer. If it is given up, the server gets a cancellation, as far as its queue has room.
struct Waiting<'a> {
    connection: &'a Connection,
    id: u64,
    is_sent: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connection.shared.pending().requests.remove(&self.id);
        if self.is_sent {
            self.connection.notify("notifications/cancelled", &format!(r#"{{"requestId":{}}}"#, self.id));
        }
    }
}

/// Reads messages until the server breaks a rule or ends. Then kills it.
async fn read(
    mut lines: Lines<impl AsyncRead + Unpin>,
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<String>,
    process: Option<Process>,
) {
    let mut unasked = 0;
    let why = loop {
        let line = match lines.next().await {
            Ok(line) => line,
            Err(NoLine::End) => break "has ended".to_owned(),
            Err(NoLine::TooLong(max)) => break format!("sent a message of more than {max} bytes"),
            Err(NoLine::Io(error)) => break format!("cannot be read: {error}"),
        };
        let incoming = match message::read(&line) {
            Ok(incoming) => incoming,
            Err(why) => break format!("sent a malformed message: {}", escape::excerpt(&why, 200)),
        };
        shared.silent.store(false, Ordering::Release);
        if let Incoming::Answer { id, answer } = incoming {
            let asked = shared.pending().requests.remove(&id);
            if let Some(asked) = asked {
                unasked = 0;
                let _ = asked.send(answer);
                continue;
            }
        } else if let Incoming::Request { id, method } = &incoming {
            if outgoing.try_send(message::reply(id, method)).is_err() {
                break "sends requests and does not read the answers".to_owned();
            }
        } else if matches!(&incoming, Incoming::Notification(method) if method == "notifications/tools/list_changed") {
            shared.changed.store(true, Ordering::Release);
        }
        unasked += 1;
        if unasked > MAX_UNASKED {
            break format!("sent more than {MAX_UNASKED} messages that nobody asked for");
        }
    };
    drop(process);
    shared.end(why);
}

async fn write(mut to: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<String>) {
    while let Some(mut line) = queue.recv().await {
        line.push('\n');
        if to.write_all(line.as_bytes()).await.is_err() || to.flush().await.is_err() {
            // The reader learns the end of the process.
            return;
        }
    }
}
