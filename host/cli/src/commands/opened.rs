//! A host with its HTTP server, for the commands that run one.

#[cfg(feature = "mcp")]
mod clients;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use dispatch::ports::Clock as _;
use domain::Span;
use server::Tls;
use tokio::net::TcpListener;
use toolgate::config::{Config, ServerTable};
use toolgate::tokens::Tokens;
use toolgate::{Host, OpenError, WallClock};

use crate::address::Published;
use crate::report::{Exit, Report};

/// How long calls may continue after the last request is answered.
const GRACE: Duration = Duration::from_secs(5);

/// How often a host that ends checks whether its calls have ended.
const INTERVAL: Span = Span::from_millis(20);

/// A host with its HTTP API open, and the address that it listens on.
pub(super) struct Opened {
    pub(super) host: Host,
    pub(super) tokens: Arc<Tokens>,
    /// The URL under which this machine reaches the host.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only `mcp` says where the host is"))]
    pub(super) url: String,
    pub(super) is_first_start: bool,
    pub(super) scheme: &'static str,
    pub(super) listen: SocketAddr,
    listener: TcpListener,
    ports: server::Ports,
    connections: server::Connections,
    tls: Option<Tls>,
    address: Published,
    #[cfg(feature = "mcp")]
    pub(super) endpoint: ::mcp::Endpoint,
}

impl Opened {
    /// Opens the host of a configuration that names its folders. Its plugins are loaded in the background. `None` if another
    /// host runs on the data folder.
    pub(super) async fn new(
        mut config: Config,
        (listener, hosts, limits): (TcpListener, Vec<String>, ServerTable),
        compiled: Option<PathBuf>,
        memory: bool,
    ) -> Result<Option<Self>, Report> {
        #[cfg(feature = "upstream")]
        super::hide_from_upstreams(&config)?;
        let (data, oauth) = (config.data_folder(), config.oauth.clone());
        #[cfg(feature = "mcp")]
        let questions = config.questions_in_clients.unwrap_or(true);
        let tls = limits.tls_files().map(Tls::open).transpose().context("cannot serve HTTPS")?;
        let listen = listener.local_addr().context("cannot find out where the host listens")?;
        config.listen = Some(listen);
        let builder = Host::builder().config(config).compiler(super::compiler()?);
        #[cfg(feature = "upstream")]
        let builder = builder.upstreams(Some(super::supervisor()?));
        let builder = builder.user_cache(compiled).load_in_background();
        let builder = if memory { builder.memory() } else { builder };
        let host = match builder.open().await {
            Err(OpenError::InUse(_)) => return Ok(None),
            opened => opened?,
        };
        let tokens = Arc::new(host.tokens().await?);
        let is_first_start = tokens.first_start(host.handle().now()).await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", near(listen));
        let address = Published::new(&data, &url).context("cannot write the host's address")?;
        #[cfg(feature = "mcp")]
        let endpoint = {
            // A client on another machine would look for this address on its own.
            let is_near = listen.ip().to_canonical().is_loopback() && !limits.behind_proxy;
            let people_at = is_near.then(|| url.clone());
            clients::endpoint(&host, people_at, limits.settings().turn_bytes, questions)?
        };
        let ports = toolgate::http_api::open(&host, tokens.clone(), listen, hosts, (&limits, oauth.as_ref())).await;
        let ports = ports.with_context(|| format!("cannot keep sessions in {}", data.display()))?;
        #[cfg(feature = "mcp")]
        let ports = server::Ports { mcp_clients: Some(clients::answering(endpoint.clone())), ..ports };
        Ok(Some(Self {
            host,
            tokens,
            url,
            is_first_start,
            scheme,
            listen,
            listener,
            ports,
            connections: limits.connections(),
            tls,
            address,
            #[cfg(feature = "mcp")]
            endpoint,
        }))
    }

    /// Serves the API until `stopped` returns. Then running calls have the time `drain`, and new turns are refused. Closes the host.
    pub(super) async fn serve(
        self,
        drain: Duration,
        stopped: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Report> {
        let Self { host, tokens, listener, ports, connections, tls, address, .. } = self;
        // They hold the store, which must be free when the host is closed.
        drop(tokens);
        #[cfg(feature = "mcp")]
        drop(self.endpoint);
        let router = server::router_with_pages(ports, console::router());
        let (handle, failing) = (host.handle().clone(), host.final_failure());
        let failure = Arc::new(OnceLock::new());
        let found = failure.clone();
        let stopped = async move {
            tokio::select! {
                () = stopped => drained(&handle, drain).await,
                fault = failing => {
                    tracing::error!(%fault, "the store takes no commits until the host is started again, so the host ends");
                    let _ = found.set(fault);
                }
            }
            // Before the listener closes: then somebody else can listen at the address.
            drop(address);
        };
        let served = server::serve(listener, router, connections, tls, stopped).await;
        if let Some(fault) = failure.get() {
            let message = "the store takes no commits until the host is started again";
            return Err(Report::new(Exit::StartAgain, message).because(fault));
        }
        let closed = host.close(GRACE).await;
        served.context("the HTTP server failed")?;
        closed.map_err(|fault| Report::new(Exit::HostFault, fault.to_string()))
    }
}

/// Takes no new turns, and waits until no call runs, at most for this time.
async fn drained(handle: &dispatch::Handle, at_most: Duration) {
    handle.drain();
    let quiet = async {
        while handle.counts().running_calls > 0 {
            WallClock.sleep(INTERVAL).await;
        }
    };
    if tokio::time::timeout(at_most, quiet).await.is_err() {
        tracing::info!("some calls still run after the time for draining");
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
