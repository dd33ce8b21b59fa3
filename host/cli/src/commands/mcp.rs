//! `mcp`: the tools for one MCP client, over standard input and output. It joins the host that runs on the data folder, or
//! starts one.

mod install;
mod marked;
mod relay;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use domain::Principal;
use server::Authenticate as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolgate::config::{Config, LISTEN};
use toolgate::tokens::Tokens;

use super::Run;
use super::opened::{Opened, affordable};
use super::stop::{stop_signal, stopped};
use crate::address::Found;
use crate::args::{Cache, Connection, is_private, not_a_file};
use crate::client::{self, Client};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// How long to wait for a host that just starts on the data folder, and how many times.
const STARTING: (Duration, u32) = (Duration::from_millis(100), 300);

/// Offer the tools to an MCP client, over standard input and output.
///
/// An MCP client starts this command and ends it. It reads no file of the folder in which the client runs. It joins the host that runs on the data folder. If none runs, it starts one,
/// which ends with it. Calls that wait stay in the data folder.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  toolgate mcp --data ~/toolgate-data --plugins ~/plugins
  toolgate mcp install cursor --data ~/toolgate-data --plugins ~/plugins
  toolgate mcp --url https://tools.example.com --token-file token

The client makes calls with a token of its own, which has the role caller and is made at the first start. It approves nothing: \
people answer in the console of the host, or with `toolgate approve`.

A host also answers MCP clients over HTTP, at /mcp."
)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    command: Option<Subcommands>,
    /// The watched folder of plugins, for a host that this starts [default: that of the configuration]
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// Print JSON also if it cannot start: the error as one object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    host: Connection,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Install(install::Install),
}

impl Run for Mcp {
    const LOG: &'static str = "warn,rmcp=error";

    fn run(mut self, terminal: &Terminal) -> Result<(), Report> {
        if let Some(Subcommands::Install(install)) = self.command {
            return install.run(terminal);
        }
        for attempt in 0..STARTING.1 {
            if attempt > 0 {
                std::thread::sleep(STARTING.0);
            }
            if is_running(&mut self.host)? {
                return relay::run(Client::new(&self.host)?);
            }
            let runtime = super::runtime()?;
            let done = runtime.block_on(self.started(terminal));
            // The thread that reads standard input may wait for a line.
            runtime.shutdown_background();
            if done? == Started::Here {
                return Ok(());
            }
        }
        let folder = own_folder(&mut self.host)?;
        let message = format!("another host uses {} and does not answer", folder.display());
        Err(Report::new(Exit::Unreachable, message).hint("stop it"))
    }
}

#[derive(PartialEq, Eq)]
enum Started {
    /// The client has ended the host.
    Here,
    /// Another host uses the data folder.
    Elsewhere,
}

impl Mcp {
    /// Serves the client from a host of its own, whose console and commands answer what waits.
    async fn started(&mut self, terminal: &Terminal) -> Result<Started, Report> {
        capabilities::filesystem::raise_open_files();
        sandbox::return_large_memory();
        let mut config = named_config(&self.host)?;
        if config.store.is_some() {
            let message = "the configuration names a database, and this command starts no host on one";
            return Err(Report::new(Exit::Refused, message)
                .hint("start a host with `toolgate serve` on this data folder, or name a running host with --url"));
        }
        let plugins = self.plugins.clone().or_else(|| self.host.data.config.as_ref().map(|_| config.plugins_folder()));
        let missing =
            || Report::new(Exit::Usage, "the folder of plugins is missing").hint(format!("{ELSEWHERE}: --plugins DIR"));
        config.plugins = Some(plugins.ok_or_else(missing)?);
        config.data.clone_from(&self.host.data.folder);
        let plugins = config.plugins_folder();
        [&plugins, &config.data_folder()].into_iter().try_for_each(|folder| not_a_file(folder))?;
        std::fs::create_dir_all(&plugins).with_context(|| format!("cannot make the folder {}", plugins.display()))?;
        let (hosts, limits) = (std::mem::take(&mut config.hosts), affordable(config.server.clone()));
        // A client never opens the host to other machines. Another host of this machine may have the address.
        let listen = config.listen.filter(|listen| is_private(listen.ip())).unwrap_or(LISTEN);
        let listener = match TcpListener::bind(listen).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((listen.ip(), 0)).await.context("cannot listen on this machine")?,
        };
        let opened = Opened::new(config, (listener, hosts, limits), self.cache.compiled(), false).await?;
        let Some(opened) = opened else { return Ok(Started::Elsewhere) };
        use_token(&mut self.host, &opened.tokens).await?;
        let by = self.principal(&opened.tokens)?;
        terminal.note(&format!("the host of this MCP client has its console at {}\n", opened.url));
        let signal = stop_signal()?;
        let endpoint = opened.endpoint.clone();
        let (stop, stopping) = oneshot::channel::<()>();
        let mut serving = tokio::spawn(opened.serve(Duration::ZERO, async move {
            // Its sender is dropped when the client has ended.
            let _ = stopping.await;
        }));
        let answered = tokio::select! {
            answered = endpoint.serve(by, tokio::io::stdin(), tokio::io::stdout()) => answered.context("cannot answer the client"),
            () = stopped(signal) => Ok(()),
            served = &mut serving => return served.context("the HTTP server failed")?.map(|()| Started::Here),
        };
        drop(stop);
        serving.await.context("the HTTP server failed")??;
        answered?;
        Ok(Started::Here)
    }

    fn principal(&self, tokens: &Tokens) -> Result<Principal, Report> {
        let token = client::given_token(&self.host)?.unwrap_or_default();
        let unknown = || Report::new(Exit::Usage, "the host of this data folder does not know the token");
        tokens.principal(token.trim()).ok_or_else(unknown)
    }
}

/// Why a default in the current folder does not count.
const ELSEWHERE: &str = "an agent starts this in a folder of its choice, so name it";

/// The configuration that the user names. A file in the folder of the client may be of anybody, such as the author of a project.
fn named_config(host: &Connection) -> Result<Config, Report> {
    Ok(host.data.config.as_deref().map(|file| Config::read(Some(file))).transpose()?.unwrap_or_default())
}

/// The data folder that the user names.
fn own_folder(host: &mut Connection) -> Result<PathBuf, Report> {
    if host.data.folder.is_none() {
        let config = host.data.config.as_ref().ok_or_else(|| {
            Report::new(Exit::Usage, "the data folder is missing")
                .hint(format!("{ELSEWHERE}: --data DIR, or --config FILE"))
        })?;
        host.data.folder = Some(Config::read(Some(config))?.data_folder());
    }
    Ok(host.data.folder.clone().unwrap_or_default())
}

/// Uses the token of MCP clients on this machine, unless the user names another one.
async fn use_token(host: &mut Connection, tokens: &Tokens) -> Result<(), Report> {
    if host.token.is_none() && host.token_file.is_none() {
        host.token = Some(tokens.of_mcp_clients(tokens.now().await?).await?);
    }
    Ok(())
}

/// Whether the host that the user names runs. Then the connection has a token for it. No file counts that the user does not
/// name.
pub(super) fn is_running(host: &mut Connection) -> Result<bool, Report> {
    if host.url.is_some() {
        if host.token.is_none() && host.token_file.is_none() {
            let report = Report::new(Exit::Usage, "the token is missing");
            return Err(report.hint("a host that --url names needs a token of the role caller: --token-file FILE"));
        }
        // Its files are not used.
        host.data.folder.get_or_insert_default();
        return Ok(true);
    }
    let folder = own_folder(host)?;
    let is_running = Found::of_running(&folder).map_err(|why| client::foreign(&folder, &why))?.is_some();
    if is_running {
        super::runtime()?.block_on(async {
            let config = named_config(host)?;
            let tokens = Tokens::configured(&config, &folder).await?;
            use_token(host, &tokens).await
        })?;
    }
    Ok(is_running)
}
