//! The signals that stop a host.

use anyhow::Context as _;
use tokio::sync::watch;

use crate::report::Exit;

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
