//! The time from the acknowledgement of a commit to its event at a follower, at the same host and at another.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::Sizes;
use super::hosts::Cluster;
use crate::http::{Serving, body, post};
use crate::measure::{Samples, now, pause, progress};
use crate::table::Table;

const CONVERSATION: &str = "followed";

/// The pauses between two turns are up to this many milliseconds, so that they are at any time since the last hint and the last poll.
const MAX_PAUSE: u64 = 100;

const MAX_WAIT: Duration = Duration::from_secs(10);

pub(super) async fn following(cluster: &Cluster, sizes: Sizes) -> Result<()> {
    progress("followers");
    let [first, second, ..] = &cluster.hosts[..] else { bail!("two hosts run") };
    let mut connection = first.connect().await?;
    post(&mut connection, "first", false, CONVERSATION).await?;
    let followers = [Follower::new(first)?, Follower::new(second)?];
    let mut times = [Samples::default(), Samples::default()];
    for n in 0..sizes.followed {
        // At another time between two polls for each commit.
        pause(n as u64 * 37 % MAX_PAUSE).await;
        let id = format!("followed{n}.");
        let path = format!("/v1/conversations/{CONVERSATION}/turns");
        let (status, answer) = connection.post(&path, &body(&id, false)).await?;
        let acknowledged = now();
        ensure!(status == 201, "{status}: {answer}");
        for (follower, times) in followers.iter().zip(&mut times) {
            let seen = follower.sees(&id)?;
            let late = seen.saturating_duration_since(acknowledged).as_secs_f64();
            times.add_value((late - acknowledged.saturating_duration_since(seen).as_secs_f64()) * 1e3);
        }
    }
    let columns = ["from the acknowledgement of a commit to its event at a follower", "median", "p99", "highest"];
    let mut table = Table::new("scale-following", &columns, 1);
    for (place, times) in ["at the same host", "at another host"].into_iter().zip(&times) {
        let cells = [0.5, 0.99, 1.0].map(|part| format!("{:.1} ms", times.quantile(part)));
        table.row(&[vec![place.to_owned()], cells.to_vec()].concat());
    }
    table.finish()
}

/// A stream of the events of a conversation.
struct Follower(Receiver<(Instant, String)>);

impl Follower {
    fn new(host: &Serving) -> Result<Self> {
        let mut stream = TcpStream::connect(host.address)?;
        let (address, token) = (host.address, &host.token);
        let request = format!(
            "GET /v1/conversations/{CONVERSATION}/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if line.starts_with("data:") && sender.send((now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Self(receiver))
    }

    /// When the first event with a text arrived.
    fn sees(&self, text: &str) -> Result<Instant> {
        loop {
            let (at, line) = self.0.recv_timeout(MAX_WAIT).context("the follower sees the commit")?;
            if line.contains(text) {
                return Ok(at);
            }
        }
    }
}
