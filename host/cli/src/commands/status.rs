//! `status`: the state of a running host.

use api::{CompilerStatus, HostStatus, LandlockState, StoreState};
use clap::Args;

use super::Run;
use crate::args::Connection;
use crate::client::{self, Client};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Show the state of the host: its store and its plugins.
///
/// Admins also see its address, its compiler, its key, and the names of plugins that are loading or refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate status
  toolgate status --json")]
pub(crate) struct Status {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Status {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let text = Client::new(&self.host)?.get("/v1/status", &[])?;
        if self.json {
            terminal.line(escape::json(&text))?;
            return Ok(());
        }
        let status: HostStatus = client::parse(&text)?;
        let title = terminal.style(Style::Strong, &format!("toolgate {}", escape::line(&status.version)));
        let at = status.address.as_deref().map_or_else(String::new, |address| format!(" at {}", escape::line(address)));
        terminal.line(format!("{title}{at}"))?;
        row(terminal, "store", store(status.store))?;
        let (names, counts) = (status.plugins, status.plugin_counts);
        for (name, style, names, count) in [
            ("live", Style::Good, Some(names.live), counts.live),
            ("loading", Style::Open, names.loading, counts.loading),
            ("refused", Style::Bad, names.rejected, counts.rejected),
        ] {
            let text = names.map_or_else(|| count.to_string(), |names| names.join(", "));
            let shown = if count == 0 { (Style::Faint, "none") } else { (style, &*escape::line(&text)) };
            row(terminal, name, shown)?;
        }
        if let Some(status) = &status.compiler {
            let (style, text) = compiler(status);
            row(terminal, "compiler", (style, &text))?;
        }
        match &status.audit_key {
            Some(key) => row(terminal, "audit key", (Style::Faint, &escape::line(key))),
            None => Ok(()),
        }
    }
}

fn row(terminal: &Terminal, name: &str, (style, text): (Style, &str)) -> Result<(), Report> {
    Ok(terminal.line(format!("  {name:<9} {}", terminal.style(style, text)))?)
}

fn store(state: StoreState) -> (Style, &'static str) {
    match state {
        StoreState::Ok => (Style::Good, "ok"),
        StoreState::DiskLow => (Style::Open, "little free space: new turns are refused, everything else goes on"),
        StoreState::DamagedRecords => {
            (Style::Open, "damaged records were found: reads of them fail, everything else goes on; see the host's log")
        }
        StoreState::Full => (Style::Bad, "the disk is full: changes are refused until there is space"),
        StoreState::Failed => (Style::Bad, "the disk failed: see the host's log, and restart the host"),
    }
}

fn compiler(compiler: &CompilerStatus) -> (Style, String) {
    let landlock = match compiler.landlock {
        _ if !compiler.own_process => return (Style::Bad, "in the host's process, without confinement".into()),
        None => return (Style::Bad, "it cannot be started: see the host's log".into()),
        Some(LandlockState::Full) => "full",
        Some(LandlockState::InPart) => "in part",
        Some(LandlockState::Missing) => "missing",
    };
    let is_full = compiler.landlock == Some(LandlockState::Full) && compiler.seccomp == Some(true);
    let seccomp = if compiler.seccomp == Some(true) { "on" } else { "missing" };
    let style = if is_full { Style::Good } else { Style::Bad };
    (style, format!("in its own process; Landlock: {landlock}; seccomp: {seccomp}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_is_good_only_if_it_is_confined_in_full() {
        use LandlockState::{Full, InPart, Missing};
        for (landlock, seccomp, good, expected) in [
            (Some(Full), Some(true), true, "in its own process; Landlock: full; seccomp: on"),
            (Some(Full), Some(false), false, "in its own process; Landlock: full; seccomp: missing"),
            (Some(InPart), Some(true), false, "in its own process; Landlock: in part; seccomp: on"),
            (Some(Missing), Some(true), false, "in its own process; Landlock: missing; seccomp: on"),
            (Some(Missing), Some(false), false, "in its own process; Landlock: missing; seccomp: missing"),
            (None, None, false, "it cannot be started: see the host's log"),
        ] {
            let (style, text) = compiler(&CompilerStatus { own_process: true, landlock, seccomp });
            assert_eq!((matches!(style, Style::Good), text.as_str()), (good, expected));
        }
        let (style, text) = compiler(&CompilerStatus { own_process: false, landlock: None, seccomp: None });
        assert_eq!((matches!(style, Style::Bad), text.as_str()), (true, "in the host's process, without confinement"));
    }
}
