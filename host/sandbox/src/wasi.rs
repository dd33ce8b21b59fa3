//! An inert WASI 0.2: the interfaces that the runtimes of languages import, with nothing behind them but clocks, randomness
//! and the call's log.
//!
//! Guests get it instead of nothing because Go does not start without clocks and randomness, and Python and JavaScript
//! would get frozen ones. There are no arguments, no environment, no files, no standard input; `wasi:sockets`, which some
//! of these runtimes import and never use, refuses every operation before it makes a socket. `wasi:http` is not here.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::{HasData, HasSelf, Linker, ResourceTable};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::{LinkOptions, cli, clocks, io, random, sockets};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView as _};
use wasmtime_wasi::{WasiCtx, WasiView as _};

use crate::capability::filesystem;
use crate::clock::{self, Clock};
use crate::guest::Guest;
use crate::random::Guests;
use crate::report::{Log, Stream};

/// The packages that every guest may import, in any version 0.2.x.
const INERT: [&str; 6] = ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random", "wasi:sockets"];

/// Whether every guest may import the interfaces of a package in this version.
pub(crate) fn is_inert(package: &str, version: &str) -> bool {
    INERT.contains(&package) && version.starts_with("0.2.")
}

/// Selects the resource table, which is all that `wasi:io` needs.
struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links all of it.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    io::error::add_to_linker::<_, Table>(linker, |guest| guest.called().ctx().table)?;
    io::poll::add_to_linker::<_, Table>(linker, |guest| guest.called().ctx().table)?;
    io::streams::add_to_linker::<_, Table>(linker, |guest| guest.called().ctx().table)?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(linker, |guest| guest.called().clocks())?;
    clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(linker, |guest| guest.called().clocks())?;
    random::random::add_to_linker::<_, HasSelf<Guests>>(linker, |guest| &mut guest.called().random)?;
    random::insecure::add_to_linker::<_, HasSelf<Guests>>(linker, |guest| &mut guest.called().random)?;
    random::insecure_seed::add_to_linker::<_, HasSelf<Guests>>(linker, |guest| &mut guest.called().random)?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::environment::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::stdin::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::stdout::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::stderr::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, |guest| guest.called().cli())?;
    filesystem::link(linker)?;
    let options = LinkOptions::default();
    sockets::network::add_to_linker::<_, WasiSockets>(linker, &(&options).into(), |guest| guest.called().sockets())?;
    sockets::instance_network::add_to_linker::<_, WasiSockets>(linker, |guest| guest.called().sockets())?;
    sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(linker, |guest| guest.called().sockets())?;
    sockets::tcp::add_to_linker::<_, WasiSockets>(linker, |guest| guest.called().sockets())?;
    sockets::tcp_create_socket::add_to_linker::<_, WasiSockets>(linker, |guest| guest.called().sockets())?;
    sockets::udp::add_to_linker::<_, WasiSockets>(linker, |guest| guest.called().sockets())?;
    sockets::udp_create_socket::add_to_linker::<_, WasiSockets>(linker, |guest| guest.called().sockets())?;
    Ok(())
}

/// The context of one call.
pub(crate) fn context(clock: Arc<dyn Clock>, log: Log) -> WasiCtx {
    WasiCtx::builder()
        .wall_clock(clock::Guests(Arc::clone(&clock)))
        .monotonic_clock(clock::Guests(clock))
        .stdout(Printed { log: log.clone(), stream: Stream::Stdout })
        .stderr(Printed { log, stream: Stream::Stderr })
        // Functions of files are called on threads for what blocks: `capability/filesystem/host.rs`.
        .allow_blocking_current_thread(true)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// What a guest prints, on its way to the call's log. It never blocks and never breaks: a guest that prints too much is
/// not told, since languages make a crash of it.
#[derive(Clone)]
struct Printed {
    log: Log,
    stream: Stream,
}

/// What a guest may write at once, and so what `write-zeroes` makes the host allocate.
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

    /// Asked for by WASI 0.3 alone, which is not linked.
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}
