//! The messages of a running host: sentences for people, or JSON events on standard output.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dispatch::Handle;
use registry::Registry;
use serde_json::{Value, json};
use toolgate::tokens::Tokens;

use crate::args::is_private;
use crate::terminal::{Style, Terminal};

/// Where and how the messages are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Messages {
    pub(super) terminal: Terminal,
    pub(super) json: bool,
}

impl Messages {
    /// The host accepts connections.
    pub(super) fn listening(
        &self,
        data: &Path,
        (scheme, listen): (&str, SocketAddr),
        is_first_start: bool,
    ) -> io::Result<()> {
        let (url, admin) = (format!("{scheme}://{listen}"), Tokens::admin_file(data));
        let (data, admin) = (data.display().to_string(), admin.display().to_string());
        let is_exposed = !is_private(listen.ip()) && scheme == "http";
        let mut event = json!({
            "event": "listening", "url": url, "data": data, "admin_token_file": admin, "is_first_start": is_first_start,
        });
        if is_exposed {
            event["is_exposed"] = true.into();
        }
        self.print(&event, || {
            let made = if is_first_start {
                format!("\n  the first start made an admin token: it is in {admin}")
            } else {
                String::new()
            };
            let commands = format!(
                "\n\n  TOOLGATE_DATA={data} toolgate pending\n  curl -H \"Authorization: Bearer $(cat {admin})\" {url}/v1/tools"
            );
            format!("toolgate listens on {}\n  data in {data}{made}{commands}", self.terminal.style(Style::Strong, &url))
        })?;
        if is_exposed {
            self.terminal
                .warning("other machines can reach this address without TLS; let only your proxy connect to it");
        }
        Ok(())
    }

    /// Waits until the plugins of the folder are loaded.
    pub(super) async fn ready(self, handle: Handle, live: Registry, plugins: PathBuf) {
        let folder = plugins.display().to_string();
        // If nobody reads the output any more, the host goes on.
        if live.is_starting() {
            let event = json!({ "event": "loading", "plugins": folder });
            let _ = self.print(&event, || format!("loading the plugins in {folder}"));
        }
        live.loaded().await;
        let (tools, plugins) = (handle.tools().len(), live.plugins());
        let refused: Vec<_> = plugins.iter().filter(|plugin| plugin.rejected.is_some()).collect();
        let misnamed = live.misnamed();
        let misnamed_json: Vec<_> = misnamed
            .iter()
            .map(|(file, finding)| json!({ "file": file.to_string_lossy(), "finding": finding.to_string() }))
            .collect();
        let event = json!({
            "event": "ready",
            "plugins": folder,
            "tools": tools,
            "refused": refused.iter().map(|plugin| plugin.name.as_str()).collect::<Vec<_>>(),
            "misnamed": misnamed_json,
        });
        if !self.json {
            for plugin in refused {
                let name = &plugin.name;
                self.terminal.warning(&format!("{name} was refused; `toolgate check` prints the reasons"));
            }
            for (file, finding) in misnamed {
                let file = escape::line(&file.display().to_string()).into_owned();
                self.terminal.warning(&format!("{file} is ignored: {finding}"));
            }
        }
        let _ = self.print(&event, || format!("ready: {tools} tools of the plugins in {folder}"));
    }

    /// The host has stopped.
    pub(super) fn stopped(&self) {
        if !self.json {
            return self.terminal.note("stopped\n");
        }
        // A reader that has ended before the host is no failure of the host.
        let _ = self.print(&json!({ "event": "stopped" }), String::new);
    }

    fn print(&self, event: &Value, text: impl FnOnce() -> String) -> io::Result<()> {
        self.terminal.line(if self.json { escape::json_line(&event.to_string()) } else { text() })
    }
}
