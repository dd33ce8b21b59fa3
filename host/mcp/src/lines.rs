//! The stdio transport: one message a line. Each line is checked, has a maximum size, and keeps the arguments of its call.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, GetExtensions as _, JsonRpcError, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::frame::{self, Checked, Invalid};

pub(crate) struct Lines<R, W> {
    read: BufReader<R>,
    /// The line as far as it was read. `None`: it is too long, and its rest is skipped.
    line: Option<Vec<u8>>,
    max: usize,
    /// `None` once the transport is closed.
    write: Arc<Mutex<Option<W>>>,
    /// The answer to the last line that could not be read, while it is written. The next line waits for it.
    refusing: Option<JoinHandle<()>>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    pub(crate) fn new(read: R, write: W, max: usize) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        Self { read: BufReader::new(read), line: Some(Vec::new()), max, write, refusing: None }
    }

    /// The next line without its end. `None` at the end of the stream. An unfinished last line is not a message. The future
    /// can be dropped: what it has read is kept.
    async fn line(&mut self) -> io::Result<Option<Result<Vec<u8>, Invalid>>> {
        loop {
            let part = self.read.fill_buf().await?;
            if part.is_empty() {
                return Ok(None);
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let text = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            match &mut self.line {
                Some(line) if line.len() + text.len() <= self.max => line.extend_from_slice(text),
                line => *line = None,
            }
            let used = end.map_or(part.len(), |end| end + 1);
            self.read.consume(used);
            if end.is_none() {
                continue;
            }
            let line = self.line.replace(Vec::new());
            return Ok(Some(line.ok_or_else(|| {
                let why = format!("a message has at most {} bytes", self.max);
                Invalid::new(None, ErrorData::invalid_request(why, None))
            })));
        }
    }

    fn refuse(&mut self, invalid: Invalid) {
        let Invalid { id, error } = invalid;
        let sent = self.send(ServerJsonRpcMessage::Error(JsonRpcError::new(id, *error)));
        self.refusing = Some(tokio::spawn(async move {
            if let Err(error) = sent.await {
                tracing::debug!(%error, "a client does not read its answers");
            }
        }));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = self.write.clone();
        async move {
            let mut text = serde_json::to_vec(&message)?;
            text.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            write.write_all(&text).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                // It only logs its failure.
                let _ = refusing.await;
                self.refusing = None;
            }
            let line = match self.line().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::debug!(%error, "the messages of a client cannot be read");
                    return None;
                }
            };
            match line.and_then(|line| message(line.trim_ascii())) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(invalid) => self.refuse(invalid),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.write.lock().await.take() {
            Some(mut write) => write.shutdown().await,
            None => Ok(()),
        }
    }
}

/// The message in a line. `None` for an empty line.
fn message(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Invalid> {
    if line.is_empty() {
        return Ok(None);
    }
    let (arguments, renamed) = match frame::check(line)? {
        Checked::Call(arguments) => (Some(arguments), None),
        Checked::Listen(renamed) => (None, Some(renamed)),
        Checked::Other => (None, None),
    };
    let message = serde_json::from_slice(renamed.as_deref().unwrap_or(line)).map_err(|_| {
        let error = ErrorData::invalid_request("not a message of JSON-RPC 2.0", None);
        Invalid::new(frame::id(line), error)
    })?;
    let mut message: ClientJsonRpcMessage = message;
    if let (Some(arguments), ClientJsonRpcMessage::Request(request)) = (arguments, &mut message) {
        request.request.extensions_mut().insert(arguments);
    }
    Ok(Some(message))
}
