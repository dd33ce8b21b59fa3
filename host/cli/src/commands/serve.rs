//! `serve`: a host behind its doors, until somebody says stop.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use dispatch::ports::Clock as _;
use server::Connections;
use tokio::net::TcpListener;
use tokio::sync::watch;
use toolgate::config::{Config, DoorTable, LISTEN};
use toolgate::tokens::Tokens;
use toolgate::{Host, WallClock};

use crate::args::{self, Serve};
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

/// How long calls may go on once every request is answered.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(args: Serve, terminal: &Terminal) -> Result<(), Report> {
    sandbox::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let done = runtime.block_on(serve(args, terminal));
    // What is left are streams and a look at a folder, which nobody waits for.
    runtime.shutdown_background();
    done
}

async fn serve(args: Serve, terminal: &Terminal) -> Result<(), Report> {
    let mut config = Config::read(args.data.config.as_deref())?;
    let explicit = args.listen.is_some();
    let listen = args.listen.or(config.listen).unwrap_or(LISTEN);
    if !args::is_private(listen.ip()) && !explicit {
        return Err(Report::new(
            Exit::Usage,
            format!("the configuration would open the host to other machines at {listen}"),
        )
        .hint(format!("if that is meant, say it on the command line, too: --listen {listen}")));
    }
    config.plugins = Some(args.plugins.unwrap_or_else(|| config.plugins_folder()));
    config.data = Some(args.data.folder.unwrap_or_else(|| config.data_folder()));
    let (hosts, door) = (std::mem::take(&mut config.hosts), config.door.clone());
    let (plugins, data) = (config.plugins_folder(), config.data_folder());
    std::fs::create_dir_all(&plugins).with_context(|| format!("cannot make the folder {}", plugins.display()))?;

    let listener = TcpListener::bind(listen).await.map_err(|error| busy(listen, &error))?;
    let listen = listener.local_addr().context("cannot find out where the host listens")?;
    let stop = stop_signal()?;
    let builder = Host::builder().config(config).compiler(super::compiler()?);
    let builder = if args.memory { builder.memory() } else { builder };
    let host = builder.open().await.map_err(anyhow::Error::from)?;
    let tokens = Tokens::open(&data)?;
    let first = tokens.first_start(WallClock.now())?;
    let address = data.join(crate::ADDRESS_FILE);
    std::fs::write(&address, format!("http://{listen}\n")).context("cannot write the host's address")?;
    greet(&host, listen, &plugins, first, terminal)?;

    let doors = toolgate::doors::open(&host, tokens, listen, hosts, &door);
    let doors = doors.with_context(|| format!("cannot keep sessions in {}", data.display()))?;
    let router = server::router_with_pages(doors, console::router());
    let served = server::serve(listener, router, connections(&door), asked(stop)).await;
    // If it is gone already, somebody cleared the folder up.
    let _ = std::fs::remove_file(&address);
    let closed = host.close(PATIENCE).await;
    served.context("the host ended")?;
    closed.map_err(|fault| Report::new(Exit::HostFault, fault.to_string()))?;
    terminal.note("stopped\n");
    Ok(())
}

/// The bounds on connections, within what the system lets the host open: the store and the plugins need files, too.
fn connections(door: &DoorTable) -> Connections {
    let bounds = door.connections();
    // `Max open files  SOFT  HARD  files`; where there is no such file, the system is asked for no bound.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
    let most = files.map_or(bounds.most, |files: usize| bounds.most.min(files / 2));
    if most < bounds.most {
        tracing::warn!(most, "fewer connections than configured: the system lets this process open few files");
    }
    Connections { most, ..bounds }
}

/// Becomes true when the host shall stop. Whoever asks twice does not want to wait.
fn stop_signal() -> anyhow::Result<watch::Receiver<bool>> {
    let (stop, stopped) = watch::channel(false);
    let mut signals = Signals::listen()?;
    tokio::spawn(async move {
        signals.next().await;
        stop.send_replace(true);
        signals.next().await;
        std::process::exit(Exit::Refused as i32);
    });
    Ok(stopped)
}

async fn asked(mut stop: watch::Receiver<bool>) {
    // The sender ends only with the process.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Ctrl-C, and what a supervisor sends.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .context("cannot listen for SIGTERM")?,
        })
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

fn greet(host: &Host, listen: SocketAddr, plugins: &Path, first: bool, terminal: &Terminal) -> std::io::Result<()> {
    let tools = host.handle().tools().len();
    let place = |path: &Path| path.display().to_string();
    terminal.line(format!("toolgate listens on {}", terminal.ink(Ink::Strong, &format!("http://{listen}"))))?;
    terminal.line(format!("  {tools} tools of the plugins in {}", place(plugins)))?;
    terminal.line(format!("  data in {}", place(host.data())))?;
    let admin = place(&Tokens::admin_file(host.data()));
    if first {
        terminal.line(format!("  a first start: the admin token is in {admin}"))?;
    }
    terminal.line(format!("\n  TOOLGATE_DATA={} toolgate pending\n  curl -H \"Authorization: Bearer $(cat {admin})\" http://{listen}/v1/tools", place(host.data())))?;
    for rejected in host.registry().plugins().iter().filter(|plugin| plugin.rejected.is_some()) {
        let name = &rejected.name;
        terminal.note(&format!(
            "{} {name} was refused; `toolgate check` says why\n",
            terminal.note_ink(Ink::Bad, "warning:")
        ));
    }
    if !args::is_private(listen.ip()) {
        terminal.note(&format!(
            "{} other machines reach this address, and tokens travel in the clear: put a proxy with TLS in front\n",
            terminal.note_ink(Ink::Bad, "warning:")
        ));
    }
    Ok(())
}

fn busy(listen: SocketAddr, error: &std::io::Error) -> Report {
    let report = Report::new(Exit::Refused, format!("cannot listen on {listen}")).because(error);
    if error.kind() == std::io::ErrorKind::AddrInUse {
        return report
            .hint("another program listens there; choose another address with --listen, or port 0 for a free one");
    }
    report
}
