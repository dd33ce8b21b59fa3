//! `serve`: a host with its HTTP server, until a signal stops it.

mod messages;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use toolgate::OpenError;
use toolgate::config::{Config, LISTEN};
use toolgate::http_api::InTheClear;

use self::messages::Messages;
use super::Run;
use super::opened::{Opened, affordable};
use super::stop::{stop_signal, stopped};
use crate::args::{Cache, Data, is_private, not_a_file};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

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
with findings and keeps the old one. Ctrl-C or SIGTERM stops the host: it takes no new turns, \
and calls get `server.drain_seconds` to finish. The next start, or another host on the database, runs the others again.

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
    // rmcp has a line for each message of an MCP client.
    const LOG: &'static str = "info,rmcp=error";

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
    config
        .server
        .check(listen)
        .map_err(|error| Report::new(Exit::Usage, error.to_string()).hint(InTheClear::REMEDY))?;
    let plugins = args.plugins.clone().unwrap_or_else(|| config.plugins_folder());
    let data = args.data.folder.clone().unwrap_or_else(|| config.data_folder());
    [&plugins, &data].into_iter().try_for_each(|folder| not_a_file(folder))?;
    if let Some(folder) = args.plugins.filter(|folder| !folder.is_dir()) {
        // It may be misspelt, and a host without plugins starts without an error.
        return Err(Report::new(Exit::Usage, format!("there is no plugin folder at {}", folder.display()))
            .hint(format!("check the name, or make the folder: mkdir -p {}", folder.display())));
    }
    (config.plugins, config.data) = (Some(plugins.clone()), Some(data.clone()));
    let (hosts, limits) = (std::mem::take(&mut config.hosts), affordable(config.server.clone()));
    let drain = limits.drain();
    std::fs::create_dir_all(&plugins).with_context(|| format!("cannot make the folder {}", plugins.display()))?;

    let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, &error))?;
    let stop = stop_signal()?;
    ignore_hangups()?;
    let compiled = args.cache.compiled();
    let opened = Opened::new(config, (listener, hosts, limits), compiled, args.memory).await?;
    let opened = opened.ok_or(OpenError::InUse(data))?;
    let messages = Messages { terminal: *terminal, json: args.json };
    messages.listening(opened.host.data(), (opened.scheme, opened.listen), opened.is_first_start)?;
    tokio::spawn(messages.ready(opened.host.handle().clone(), opened.host.registry().clone(), plugins));
    opened.serve(drain, stopped(stop)).await?;
    messages.stopped();
    Ok(())
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

fn cannot_listen(listen: SocketAddr, error: &std::io::Error) -> Report {
    let report = Report::new(Exit::Refused, format!("cannot listen on {listen}")).because(error);
    if error.kind() == std::io::ErrorKind::AddrInUse {
        return report.hint("another program uses this address; choose one with --listen, or port 0 for a free port");
    }
    report
}
