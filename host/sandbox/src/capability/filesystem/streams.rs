//! The streams of files: what passes through them is counted, and what waits for the disk has its deadline.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

use super::Written;
use super::open::Opened;
use crate::blocking::Blocking;
use crate::spending::{Charge, Traffic};

/// A file that is read.
pub(super) struct Reading {
    pub(super) inner: DynInputStream,
    pub(super) traffic: Traffic,
    pub(super) blocking: Blocking,
    pub(super) _opened: Option<Arc<Opened>>,
    pub(super) _charge: Charge,
}

/// A file that is written.
pub(super) struct Writing {
    pub(super) inner: DynOutputStream,
    pub(super) traffic: Traffic,
    pub(super) blocking: Blocking,
    pub(super) written: Written,
    pub(super) opened: Option<Arc<Opened>>,
    /// Where in the file it is.
    pub(super) at: u64,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reading {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Reading {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.inner.read(size)?;
        self.traffic.into_guest(bytes.len());
        Ok(bytes)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.blocking.timely("read a file", self.inner.blocking_read(size)).await.map_err(trap)??;
        self.traffic.into_guest(bytes.len());
        Ok(bytes)
    }

    async fn cancel(&mut self) {
        // Whoever drops the stream waits no longer for the disk than for anything else.
        let _ = self.blocking.timely("close a file", self.inner.cancel()).await;
    }
}

impl Writing {
    fn take(&mut self, bytes: usize) -> StreamResult<()> {
        self.written.take(bytes).map_err(trap)?;
        self.traffic.out_of_guest(bytes);
        self.at = self.at.saturating_add(bytes as u64);
        if let Some(opened) = &self.opened {
            opened.reaches(self.at);
        }
        Ok(())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writing {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Writing {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(bytes.len())?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(bytes.len())?;
        self.blocking.timely("write a file", self.inner.blocking_write_and_flush(bytes)).await.map_err(trap)?
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        let _ = self.blocking.timely("close a file", self.inner.cancel()).await;
    }
}

fn trap(stop: crate::ending::Stop) -> StreamError {
    StreamError::Trap(stop.into())
}
