//! `serve`: a host with its HTTP server, until a signal stops it.

mod messages;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use dispatch::ports::Clock as _;
use server::Tls;
use tokio::net::TcpListener;
use tokio::sync::watch;
use toolgate::config::{Config, LISTEN, ServerTable};
use toolgate::tokens::Tokens;
use toolgate::{Host, OpenError, WallClock};

use self::messages::Messages;
use super::Run;
use crate::address::Published;
use crate::args::{Cache, Data, is_private};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// The log filter of a host. rmcp has a line for each message of a client.
pub(super) const HOST_LOG: &str = "info,rmcp=error";

/// How long calls may continue after the last request is answered.
const GRACE: Duration = Duration::from_secs(5);

/// Serve a folder of plugins.
///
/// The first start, or the first `toolgate token create`, makes an admin token and keeps it in the data folder. The other
/// commands find it there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate serve
  toolgate serve --plugins ./plugins --data /var/lib/toolgate --listen 127.0.0.1:8080
  toolgate serve --memory                  keep no turn after the end
  toolgate serve --listen 127.0.0.1:0 --json      events for scripts: `listening` has the `url`

The host answers at once and loads the plugins meanwhile; `toolgate status` shows which are loading. A component that is put \
into the folder is live within a second if `toolgate build` or `toolgate check` has compiled it for you, and otherwise after \
the time that compiling takes: a second for Rust and C, half a minute for Python on two cores. The host refuses a component \
with findings and keeps the old one. Ctrl-C or SIGTERM stops the host. Calls get a few seconds to finish; the next start runs the others again.

SIGHUP is ignored: the host reads plugins and tokens again when they change, and the configuration only when it starts.")]
pub(crate) struct Serve {
    /// The watched folder of plugins, which must exist [default: ./plugins, which is made if it does not exist]
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// The address to listen on; port 0 takes a free port [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    listen: Option<SocketAddr>,
    /// Keep turns in memory only: they are lost when the host ends
    #[arg(long)]
    memory: bool,
    /// Print JSON: one event a line, `listening`, `loading`, `ready` and `stopped`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    cache: Cache,
}

impl Run for Serve {
    const LOG: &'static str = HOST_LOG;

    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        capabilities::filesystem::raise_open_files();
        sandbox::return_large_memory();
        let runtime = super::runtime()?;
        let done = runtime.block_on(serve(self, terminal));
        // Open streams and the folder's watcher may still run.
        runtime.shutdown_background();
        done
    }
}

/// Parses an address with a port.
fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = LISTEN.port();
        let complete = match (text.parse::<IpAddr>(), text.trim_start_matches(':').parse::<u16>()) {
            (Ok(ip), _) => Some(SocketAddr::new(ip, port)),
            (Err(_), Ok(port)) => Some(SocketAddr::new(LISTEN.ip(), port)),
            (Err(_), Err(_)) => None,
        };
        match complete {
            Some(complete) => format!("expected an IP address and a port; try {complete}"),
            None => format!("expected an IP address and a port, such as {LISTEN} or [::1]:{port}"),
        }
    })
}

async fn serve(args: Serve, terminal: &Terminal) -> Result<(), Report> {
    let mut config = Config::read(args.data.config.as_deref())?;
    let is_explicit = args.listen.is_some();
    let listen = args.listen.or(config.listen).unwrap_or(LISTEN);
    if !is_private(listen.ip()) && !is_explicit {
        let message = format!("the configuration would open the host to other machines at {listen}");
        let hint = format!("if you want that, repeat it on the command line: --listen {listen}");
        return Err(Report::new(Exit::Usage, message).hint(hint));
    }
    if !is_private(listen.ip()) && config.server.tls.is_none() && !config.server.behind_proxy {
        let message = format!("other machines could reach {listen}, and tokens would cross the network in the clear");
        let hint = "name a certificate in `[server.tls]`, or write `behind_proxy = true` in `[server]` if a proxy serves HTTPS";
        return Err(Report::new(Exit::Usage, message).hint(hint));
    }
    if let Some(folder) = args.plugins.as_ref().filter(|folder| !folder.is_dir()) {
        // It may be misspelt, and a host without plugins starts without an error.
        return Err(Report::new(Exit::Usage, format!("there is no plugin folder at {}", folder.display()))
            .hint(format!("check the name, or make the folder: mkdir -p {}", folder.display())));
    }
    config.plugins = Some(args.plugins.unwrap_or_else(|| config.plugins_folder()));
    config.data = Some(args.data.folder.unwrap_or_else(|| config.data_folder()));
    let (hosts, limits) = (std::mem::take(&mut config.hosts), affordable(config.server.clone()));
    let plugins = config.plugins_folder();
    std::fs::create_dir_all(&plugins).with_context(|| format!("cannot make the folder {}", plugins.display()))?;

    let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, &error))?;
    let stop = stop_signal()?;
    ignore_hangups()?;
    let compiled = args.cache.compiled();
    let data = config.data_folder();
    let opened = Opened::new(config, (listener, hosts, limits), compiled, args.memory).await?;
    let opened = opened.ok_or(OpenError::InUse(data))?;
    let messages = Messages { terminal: *terminal, json: args.json };
    messages.listening(opened.host.data(), (opened.scheme, opened.listen), opened.is_first_start)?;
    tokio::spawn(messages.ready(opened.host.handle().clone(), opened.host.registry().clone(), plugins));
    opened.serve(stopped(stop)).await?;
    messages.stopped();
    Ok(())
}

/// A host with its HTTP API, and the address that it listens on.
pub(super) struct Opened {
    host: Host,
    pub(super) tokens: Tokens,
    /// The URL under which this machine reaches the host.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only `mcp` says where the host is"))]
    pub(super) url: String,
    is_first_start: bool,
    scheme: &'static str,
    listen: SocketAddr,
    listener: TcpListener,
    /// Further host names that it answers to.
    hosts: Vec<String>,
    limits: ServerTable,
    tls: Option<Tls>,
    address: Published,
    #[cfg(feature = "mcp")]
    pub(super) endpoint: ::mcp::Endpoint,
}

impl Opened {
    /// Opens the host of a configuration that names its folders. Its plugins are loaded in the background. `None` if another
    /// host runs on the data folder.
    pub(super) async fn new(
        config: Config,
        (listener, hosts, limits): (TcpListener, Vec<String>, ServerTable),
        compiled: Option<PathBuf>,
        memory: bool,
    ) -> Result<Option<Self>, Report> {
        let data = config.data_folder();
        let tls = limits.tls_files().map(Tls::open).transpose().context("cannot serve HTTPS")?;
        let listen = listener.local_addr().context("cannot find out where the host listens")?;
        let builder = Host::builder().config(config).compiler(super::compiler()?);
        let builder = builder.user_cache(compiled).load_in_background();
        let builder = if memory { builder.memory() } else { builder };
        let host = match builder.open().await {
            Err(OpenError::InUse(_)) => return Ok(None),
            opened => opened?,
        };
        let tokens = Tokens::open(&data)?;
        let is_first_start = tokens.first_start(WallClock.now())?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", near(listen));
        let address = Published::new(&data, &url).context("cannot write the host's address")?;
        #[cfg(feature = "mcp")]
        let endpoint = super::mcp::endpoint(&host, &url, limits.settings().turn_bytes)?;
        Ok(Some(Self {
            host,
            tokens,
            url,
            is_first_start,
            scheme,
            listen,
            listener,
            hosts,
            limits,
            tls,
            address,
            #[cfg(feature = "mcp")]
            endpoint,
        }))
    }

    /// Serves the API until `stopped` returns, and closes the host.
    pub(super) async fn serve(self, stopped: impl Future<Output = ()> + Send + 'static) -> Result<(), Report> {
        #[cfg(feature = "mcp")]
        let endpoint = self.endpoint.clone();
        let Self { host, tokens, listen, listener, hosts, limits, tls, address, .. } = self;
        let ports = toolgate::http_api::open(&host, tokens, listen, hosts, &limits).await;
        let ports = ports.with_context(|| format!("cannot keep sessions in {}", host.data().display()))?;
        #[cfg(feature = "mcp")]
        let ports = server::Ports { mcp_clients: Some(super::mcp::clients(endpoint)), ..ports };
        let router = server::router_with_pages(ports, console::router());
        let stopped = async move {
            stopped.await;
            // Before the listener closes: then somebody else can listen at the address.
            drop(address);
        };
        let served = server::serve(listener, router, limits.connections(), tls, stopped).await;
        let closed = host.close(GRACE).await;
        served.context("the HTTP server failed")?;
        closed.map_err(|fault| Report::new(Exit::HostFault, fault.to_string()))
    }
}

/// The address under which this machine reaches the host, if it listens on all of them.
fn near(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// With at most half as many connections as the system allows files: the store and the plugins need files too.
pub(super) fn affordable(mut table: ServerTable) -> ServerTable {
    // A line is `Max open files  SOFT  HARD  files`. Without such a file the number is not bounded here.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
    let max = files.and_then(|files: usize| NonZeroUsize::new(files / 2));
    if let Some(max) = max.filter(|max| max.get() < table.connections().max) {
        tracing::warn!(
            max,
            "the system lets this process open few files, so it accepts fewer connections than configured"
        );
        table.connections = Some(max);
    }
    table
}

/// Becomes true at the first signal to stop. The second signal ends the process at once.
pub(super) fn stop_signal() -> anyhow::Result<watch::Receiver<bool>> {
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

/// Without a handler, SIGHUP would end the process without the steps of a stop.
fn ignore_hangups() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        let mut hangups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
            .context("cannot listen for SIGHUP")?;
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                tracing::info!(
                    "SIGHUP is ignored: plugins and tokens are read again when they change; restart the host to read the \
                     configuration again"
                );
            }
        });
    }
    Ok(())
}

pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    // The sender ends only with the process.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Ctrl-C, and the SIGTERM of a supervisor.
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

fn cannot_listen(listen: SocketAddr, error: &std::io::Error) -> Report {
    let report = Report::new(Exit::Refused, format!("cannot listen on {listen}")).because(error);
    if error.kind() == std::io::ErrorKind::AddrInUse {
        return report.hint("another program uses this address; choose one with --listen, or port 0 for a free port");
    }
    report
}
