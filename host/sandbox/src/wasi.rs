//! An inert WASI 0.2: the interfaces that the runtimes of languages import, with clocks, randomness and the call's log behind
//! them and nothing else.
//!
//! Go does not start without clocks and randomness, and Python and JavaScript would get frozen ones. Guests have no arguments,
//! no environment, no files and no standard input. Some runtimes import `wasi:sockets` and never use it; it refuses every
//! operation before it makes a socket. `wasi:http` is a capability.

use std::sync::Arc;

use bytes::Bytes;
use capabilities::CallParts;
use wasmtime::component::{HasData, HasSelf, Linker, ResourceTable};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::{LinkOptions, cli, clocks, io, random, sockets};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView as _};
use wasmtime_wasi::{WasiCtx, WasiView};

use crate::clock::{self, GuestClock};
use crate::durable::Timers;
use crate::random::Guests;
use crate::report::Log;
use crate::stream::Stream;

/// Packages that every guest may import, in any version 0.2.x.
const INERT: [&str; 6] = ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random", "wasi:sockets"];

/// Whether every guest may import the interfaces of a package in this version.
pub(crate) fn is_inert(package: &str, version: &str) -> bool {
    INERT.contains(&package) && version.starts_with("0.2.")
}

/// Selects the resource table, which is the only part that `wasi:io` needs.
struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// A call that has the inert WASI.
pub(crate) trait Inert: WasiView + CallParts {
    /// Counts a host call, and ends the guest if a limit is exceeded.
    fn counted(&mut self) -> &mut Self;
    fn random(&mut self) -> &mut Guests;
    /// The part that waits.
    fn timers(&mut self) -> Timers<'_>;
}

pub(crate) fn link<T: Inert>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    io::error::add_to_linker::<_, Table>(linker, |call| call.counted().ctx().table)?;
    io::poll::add_to_linker::<_, Timers<'static>>(linker, |call| call.counted().timers())?;
    io::streams::add_to_linker::<_, Table>(linker, |call| call.counted().ctx().table)?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(linker, |call| call.counted().clocks())?;
    clocks::monotonic_clock::add_to_linker::<_, Timers<'static>>(linker, |call| call.counted().timers())?;
    random::random::add_to_linker::<_, HasSelf<Guests>>(linker, |call| Inert::random(call.counted()))?;
    random::insecure::add_to_linker::<_, HasSelf<Guests>>(linker, |call| Inert::random(call.counted()))?;
    random::insecure_seed::add_to_linker::<_, HasSelf<Guests>>(linker, |call| Inert::random(call.counted()))?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::environment::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::stdin::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::stdout::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::stderr::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, |call| call.counted().cli())?;
    capabilities::link_inert(linker)?;
    let options = LinkOptions::default();
    sockets::network::add_to_linker::<_, WasiSockets>(linker, &(&options).into(), |call| call.counted().sockets())?;
    sockets::instance_network::add_to_linker::<_, WasiSockets>(linker, |call| call.counted().sockets())?;
    sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(linker, |call| call.counted().sockets())?;
    sockets::tcp::add_to_linker::<_, WasiSockets>(linker, |call| call.counted().sockets())?;
    sockets::tcp_create_socket::add_to_linker::<_, WasiSockets>(linker, |call| call.counted().sockets())?;
    sockets::udp::add_to_linker::<_, WasiSockets>(linker, |call| call.counted().sockets())?;
    sockets::udp_create_socket::add_to_linker::<_, WasiSockets>(linker, |call| call.counted().sockets())?;
    Ok(())
}

pub(crate) fn context(clock: Arc<dyn GuestClock>, log: Log) -> WasiCtx {
    WasiCtx::builder()
        .wall_clock(clock::Guests(Arc::clone(&clock)))
        .monotonic_clock(clock::Guests(clock))
        .stdout(Printed { log: log.clone(), stream: Stream::Stdout })
        .stderr(Printed { log, stream: Stream::Stderr })
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// Printed output, which goes to the call's log. It never blocks and never fails: most languages crash when printing fails.
#[derive(Clone)]
struct Printed {
    log: Log,
    stream: Stream,
}

/// Bytes that a guest may write at once. The host allocates as many for `write-zeroes`.
const PERMIT: usize = 64 << 10;

impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.log.print(self.stream, &bytes).map_err(|stop| StreamError::Trap(stop.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Printed {
    async fn ready(&mut self) {}
}

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// Only WASI 0.3 calls this, and it is not linked.
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}
