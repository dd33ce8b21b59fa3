//! The effect of eight spinning guests on a well-behaved call and on a socket of the same process.

use std::sync::Arc;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::measure::{Samples, now, pause};
use crate::setting;

const CALLS: usize = 1_000;

pub(crate) fn neighbours() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    runtime.block_on(async {
        let host = Arc::new(setting::host().await?);
        let echo = echo().await?;
        measure(&host, echo, "alone").await?;
        let spinning: Vec<_> = (0..8).map(|n| tokio::spawn(spin(host.clone(), n))).collect();
        pause(100).await;
        measure(&host, echo, "beside 8 spinning guests").await?;
        for task in &spinning {
            task.abort();
        }
        anyhow::Ok(())
    })
}

/// Keeps one guest spinning: when one is stopped at its deadline, the next begins.
async fn spin(host: Arc<toolgate::Host>, n: usize) -> Result<()> {
    let by = setting::caller()?;
    loop {
        let mut request = setting::turn(&format!("spin{n}"), "call_1", "spin", true)?;
        request.calls[0].arguments = domain::Json::unchecked("{}");
        host.handle().submit(&by, request).await?;
    }
}

async fn measure(host: &Arc<toolgate::Host>, echo: std::net::SocketAddr, when: &str) -> Result<()> {
    let by = setting::caller()?;
    let request = setting::turn("calm", "call_1", "echo", true)?;
    let (mut calls, mut echoes) = (Samples::default(), Samples::default());
    let mut stream = TcpStream::connect(echo).await?;
    stream.set_nodelay(true)?;
    let mut byte = [0];
    for _ in 0..CALLS {
        let start = now();
        host.handle().submit(&by, request.clone()).await?;
        calls.add(start.elapsed(), 1);
        let start = now();
        stream.write_all(&[1]).await?;
        stream.read_exact(&mut byte).await?;
        echoes.add(start.elapsed(), 1);
    }
    calls.say_tail(&format!("a call of a well-behaved guest, {when}"));
    echoes.say_tail(&format!("a TCP echo, {when} (aim: p99 under 5 ms)"));
    Ok(())
}

/// A socket that echoes its input, on the runtime that would serve HTTP.
async fn echo() -> Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    Ok(address)
}
