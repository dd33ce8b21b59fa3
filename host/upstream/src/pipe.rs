//! A connection over the pipes of a process: one message is one line.

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
use crate::message::{self, Answer, Incoming, NoAnswer};
use crate::reading::{Lines, NoLine};
use crate::settings::{Program, Redact};
use crate::stderr;
use crate::unasked::Unasked;

/// The messages that can wait until the server reads them.
const QUEUE: usize = 64;

/// Ends the process when it is dropped.
pub(crate) struct Pipe {
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

impl Pipe {
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
        let mut connection = Self::over(output, input, max, Some(process), clock);
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
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let unasked = (Unasked::new(clock.now(), max), clock.clone());
        let reading = tokio::spawn(read(Lines::new(from, max), shared.clone(), outgoing.clone(), process, unasked));
        let writing = tokio::spawn(write(to, queue));
        Self { shared, outgoing, tasks: vec![reading, writing] }
    }

    /// Why it has ended.
    pub(crate) fn ended(&self) -> Option<String> {
        let ended = self.shared.pending().ended.clone();
        ended.or_else(|| self.outgoing.is_closed().then(|| "reads no more messages".to_owned()))
    }

    /// Ends it at once, with its process. Requests without an answer get this reason.
    pub(crate) fn kill(&self, why: &str) {
        self.shared.end(why);
        for task in &self.tasks {
            task.abort();
        }
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

impl Drop for Pipe {
    fn drop(&mut self) {
        self.kill("was stopped");
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
    connection: &'a Pipe,
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
    (mut unasked, clock): (Unasked, Arc<dyn Clock>),
) {
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
        if let Err(why) = unasked.take(clock.now(), line.len()) {
            break why;
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
