//! The same turns over HTTP on loopback with the release binary and kept connections.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::measure::{Samples, now, pause, say};
use crate::setting;

/// A host as a process. It ends with this value.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Serving {
    /// Starts `toolgate serve` and waits until it answers.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        Self::start_beside(folder, None)
    }

    /// Starts a host with the configuration of its folder, if there is one. The token of another host on its database is valid at it.
    pub(crate) fn start_beside(folder: &Path, other: Option<&Self>) -> Result<Self> {
        let binary = std::env::current_exe()?.with_file_name("toolgate");
        ensure!(binary.is_file(), "the binary is missing: cargo build --release -p toolgate-cli");
        let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", &free.to_string()]);
        command.arg("--plugins").arg(folder.join("plugins")).arg("--data").arg(folder.join("data"));
        let config = folder.join("toolgate.toml");
        if config.is_file() {
            command.arg("--config").arg(config);
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut serving = Self { child, address: free, token: String::new() };
        let start = now();
        let kept = folder.join("data/admin-token");
        while std::net::TcpStream::connect(free).is_err() || (other.is_none() && !kept.is_file()) {
            ensure!(start.elapsed() < Duration::from_secs(60), "the host does not answer");
            if let Some(status) = serving.child.try_wait()? {
                bail!("the host ended: {status}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        serving.token = match other {
            Some(other) => other.token.clone(),
            None => std::fs::read_to_string(kept)?.trim().to_owned(),
        };
        Ok(serving)
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, head: format!("Host: {}\r\nAuthorization: Bearer {}\r\n", self.address, self.token) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A kept connection. It reads only HTTP/1.1 responses with a `content-length`.
pub(crate) struct Connection {
    stream: TcpStream,
    head: String,
}

impl Connection {
    /// Posts a JSON text and returns the status and the body of the answer.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<(u16, String)> {
        let head = &self.head;
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::with_capacity(4096);
        loop {
            let begin = answer.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
            if let Some(begin) = begin {
                let head = String::from_utf8_lossy(&answer[..begin]).to_ascii_lowercase();
                let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let length: usize = field("content-length:").context("a length is stated")?.parse()?;
                if answer.len() >= begin + length {
                    let status = head.split(' ').nth(1).context("a status line")?.parse()?;
                    return Ok((status, String::from_utf8_lossy(&answer[begin..begin + length]).into_owned()));
                }
            }
            ensure!(self.stream.read_buf(&mut answer).await? > 0, "the host closed the connection");
        }
    }
}

/// A turn of one call.
pub(crate) fn body(id: &str, ephemeral: bool) -> String {
    let arguments = setting::ARGUMENTS;
    format!(r#"{{"calls":[{{"id":"{id}","tool":"echo","arguments":{arguments}}}],"ephemeral":{ephemeral}}}"#)
}

/// Puts the plugin `lab` into the folder of a host.
pub(crate) fn add_plugin(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder.join("plugins"))?;
    Ok(std::fs::write(folder.join("plugins/lab.wasm"), setting::plugin("lab")?)?)
}

/// Posts until the plugin is live.
pub(crate) async fn first_call(connection: &mut Connection) -> Result<()> {
    let start = now();
    loop {
        let (status, answer) = connection.post("/v1/conversations/warm/turns", &body("call_1", true)).await?;
        if (200..300).contains(&status) && answer.contains("\"ok\":true") {
            return Ok(());
        }
        ensure!(start.elapsed() < Duration::from_secs(120), "no call succeeds: {status} {answer}");
        pause(1).await;
    }
}

pub(crate) fn http() -> Result<()> {
    let folder = tempfile::tempdir()?;
    add_plugin(folder.path())?;
    let serving = Serving::start(folder.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    runtime.block_on(async {
        let mut connection = serving.connect().await?;
        first_call(&mut connection).await?;
        for (what, ephemeral) in [("ephemeral", true), ("durable", false)] {
            let mut samples = Samples::default();
            for n in 0..500 {
                let start = now();
                post(&mut connection, &format!("one_{what}_{n}"), ephemeral, "one").await?;
                samples.add(start.elapsed(), 1);
            }
            samples.say_tail(&format!("one caller, {what} turn, answered when settled"));
            for callers in [16, 256] {
                let rate = rate(std::slice::from_ref(&serving), callers, ephemeral, what, WINDOW).await?;
                say(&format!("  {callers:>4} callers, {what} turns{:>37.0} turns/s", rate));
            }
        }
        anyhow::Ok(())
    })
}

pub(crate) async fn post(connection: &mut Connection, id: &str, ephemeral: bool, conversation: &str) -> Result<()> {
    let path = format!("/v1/conversations/{conversation}/turns?wait_ms=10000&until=settled");
    let (status, answer) = connection.post(&path, &body(id, ephemeral)).await?;
    ensure!(status < 300 && answer.contains("\"settled\""), "{status}: {answer}");
    Ok(())
}

const WINDOW: Duration = Duration::from_secs(3);

/// Settled turns per second of `callers` callers, which are spread over the hosts. Each waits for its turn before the next.
pub(crate) async fn rate(
    hosts: &[Serving],
    callers: usize,
    ephemeral: bool,
    what: &str,
    window: Duration,
) -> Result<f64> {
    let mut connections = Vec::new();
    for host in hosts.iter().cycle().take(callers) {
        connections.push(host.connect().await?);
    }
    let done = Arc::new(AtomicUsize::new(0));
    let start = now();
    let callers: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(caller, mut connection)| {
            let (done, what) = (done.clone(), what.to_owned());
            tokio::spawn(async move {
                let mut n = 0;
                while start.elapsed() < window {
                    let id = format!("{what}_{callers}_{caller}_{n}");
                    post(&mut connection, &id, ephemeral, &format!("many{caller}")).await?;
                    n += 1;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}
