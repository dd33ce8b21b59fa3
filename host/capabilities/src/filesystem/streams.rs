//! The streams of files. They read and write on threads that may block, with a permit, and count their bytes. A host function
//! that waits for them has its deadline.

use std::fs::File;
use std::io;
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::Written;
use super::open::{Opened, READ_AHEAD};
use crate::blocking::StartedWork;
use crate::stop::Stop;
use crate::usage::{Charge, Usage};

/// Bytes that are read for a guest that only asks whether there is something to read.
const READ_UNASKED: usize = 4 << 10;

/// Bytes that a guest may write at once.
const PERMIT: usize = 64 << 10;

/// A file that is read.
pub(super) struct Reading {
    pub(super) file: Arc<File>,
    /// The offset in the file.
    pub(super) at: u64,
    pub(super) state: Read,
    pub(super) usage: Usage,
    /// After the file, which it closes.
    pub(super) opened: Option<Arc<Opened>>,
    pub(super) _charge: Charge,
}

/// The bytes that were read ahead of the guest.
#[derive(Default)]
pub(super) enum Read {
    #[default]
    Nothing,
    Running(StartedWork<io::Result<Bytes>>),
    Here(Bytes),
    Failed(StreamError),
    Ended,
}

impl Reading {
    fn start(&mut self, size: usize) {
        let (file, opened, at) = (Arc::clone(&self.file), self.opened.clone(), self.at);
        let work = move || {
            let read = read(&file, at, size.min(READ_AHEAD));
            drop(file);
            drop(opened);
            read
        };
        self.state = Read::Running(self.usage.blocking.start(work));
    }

    async fn settle(&mut self) {
        let Read::Running(running) = &mut self.state else { return };
        self.state = match running.await {
            Ok(Ok(bytes)) if bytes.is_empty() => Read::Ended,
            Ok(Ok(bytes)) => Read::Here(bytes),
            Ok(Err(error)) => Read::Failed(StreamError::LastOperationFailed(error.into())),
            Err(stop) => Read::Failed(trap(stop)),
        };
    }
}

fn read(file: &File, at: u64, size: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; size];
    loop {
        match file.read_at(&mut bytes, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes.into());
            }
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reading {
    async fn ready(&mut self) {
        if let Read::Nothing = self.state {
            self.start(READ_UNASKED);
        }
        self.settle().await;
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Reading {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match &mut self.state {
            Read::Nothing if size > 0 => self.start(size),
            Read::Nothing | Read::Running(_) => {}
            Read::Here(bytes) => {
                let taken = bytes.split_to(size.min(bytes.len()));
                if bytes.is_empty() {
                    self.state = Read::Nothing;
                }
                self.at = self.at.saturating_add(taken.len() as u64);
                self.usage.bytes.count_in(taken.len());
                return Ok(taken);
            }
            Read::Failed(_) | Read::Ended => {
                return match mem::replace(&mut self.state, Read::Ended) {
                    Read::Failed(error) => Err(error),
                    _ => Err(StreamError::Closed),
                };
            }
        }
        Ok(Bytes::new())
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        if let (Read::Nothing, 1..) = (&self.state, size) {
            self.start(size);
        }
        let blocking = self.usage.blocking.clone();
        blocking.timely("read a file", self.settle()).await.map_err(trap)?;
        self.read(size)
    }
}

/// A file that is written.
pub(super) struct Writing {
    pub(super) file: Arc<File>,
    /// The offset in the file.
    pub(super) at: u64,
    /// Whether it writes to the end of the file.
    pub(super) appends: bool,
    pub(super) state: Write,
    pub(super) usage: Usage,
    pub(super) written: Written,
    /// After the file, which it closes.
    pub(super) opened: Option<Arc<Opened>>,
}

/// The state of the last write.
#[derive(Default)]
pub(super) enum Write {
    #[default]
    Done,
    Running(StartedWork<io::Result<()>>),
    Failed(StreamError),
    Closed,
}

impl Writing {
    /// Starts a write that the guest is permitted.
    fn start(&mut self, bytes: Bytes) -> StreamResult<()> {
        if !matches!(self.state, Write::Done) || bytes.len() > PERMIT {
            let why = "wrote more to a file than `check-write` permitted";
            return Err(trap(Stop::FixedLimit(why.to_owned())));
        }
        self.written.take(bytes.len()).map_err(trap)?;
        let charge = self.usage.memory.charge(bytes.len()).map_err(trap)?;
        self.usage.bytes.count_out(bytes.len());
        let (file, at, appends) = (Arc::clone(&self.file), self.at, self.appends);
        self.at = self.at.saturating_add(bytes.len() as u64);
        let opened = self.opened.clone();
        if let Some(opened) = &opened {
            opened.reaches(self.at);
        }
        let work = move || {
            let written = if appends { append(&file, &bytes) } else { file.write_all_at(&bytes, at) };
            drop((bytes, charge, file));
            drop(opened);
            written
        };
        self.state = Write::Running(self.usage.blocking.start(work));
        Ok(())
    }

    async fn settle(&mut self) {
        let Write::Running(running) = &mut self.state else { return };
        self.state = match running.await {
            Ok(Ok(())) => Write::Done,
            Ok(Err(error)) => Write::Failed(StreamError::LastOperationFailed(error.into())),
            Err(stop) => Write::Failed(trap(stop)),
        };
    }

    /// The bytes that the guest may write now: none while a write runs.
    fn permit(&mut self) -> StreamResult<usize> {
        match &self.state {
            Write::Done => Ok(PERMIT),
            Write::Running(_) => Ok(0),
            Write::Failed(_) | Write::Closed => match mem::replace(&mut self.state, Write::Closed) {
                Write::Failed(error) => Err(error),
                _ => Err(StreamError::Closed),
            },
        }
    }
}

/// Writes to the end of a file.
fn append(file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match append_some(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn append_some(file: &File, bytes: &[u8]) -> io::Result<usize> {
    use rustix::io::{ReadWriteFlags, pwritev2};
    Ok(pwritev2(file, &[io::IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND)?)
}

/// Not atomic: two streams that append at the same time may write to the same offset.
#[cfg(not(target_os = "linux"))]
fn append_some(file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.write_at(bytes, file.metadata()?.len())
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writing {
    async fn ready(&mut self) {
        self.settle().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Writing {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if let Write::Closed = self.state {
            return Err(StreamError::Closed);
        }
        self.start(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        let blocking = self.usage.blocking.clone();
        let written = async {
            self.settle().await;
            self.permit()?;
            self.start(bytes)?;
            self.settle().await;
            self.permit().map(drop)
        };
        blocking.timely("write a file", written).await.map_err(trap)?
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.permit().map(drop)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.permit()
    }
}

fn trap(stop: Stop) -> StreamError {
    StreamError::Trap(stop.into())
}
