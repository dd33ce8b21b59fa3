//! Shows events while the demo runs, and limits the time of a demo that answers by itself.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::CONVERSATION;
use super::folder::Folder;
use super::host::Host;
use super::toolgate::Toolgate;
use crate::console;

/// The time limit of a demo that answers by itself, without builds.
const PATIENCE: Duration = Duration::from_secs(180);

/// The time limit of the last events, because the connection is made again after the kill.
const ARRIVAL: Duration = Duration::from_secs(20);

/// `toolgate events`, with a line for each event. It survives the kill of the host: it connects again and continues after the
/// last event.
pub(crate) struct Events {
    child: Child,
    settled: Receiver<()>,
}

impl Events {
    /// Follows the demo's conversation.
    pub(crate) fn follow(agent: &Toolgate) -> Result<Self> {
        let mut command = agent.command(&["events", CONVERSATION, "--json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("could not follow the events")?;
        let lines = child.stdout.take().context("the events have no output")?;
        let (tell, settled) = mpsc::channel();
        std::thread::spawn(move || show(lines, &tell));
        Ok(Self { child, settled })
    }

    /// Shows the remaining events of the turn, and ends.
    pub(crate) fn finish(mut self) {
        if self.settled.recv_timeout(ARRIVAL).is_err() {
            console::aside("  (the last events did not arrive)");
        }
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn show(lines: ChildStdout, settled: &Sender<()>) {
    let mut tools = HashMap::new();
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(line) = sentence(&event, &mut tools) {
            console::aside(&format!("  | {line}"));
        }
        if event["event"] == "turn.settled" {
            // A demo that failed before does not wait for it.
            let _ = settled.send(());
        }
    }
}

/// An event in a line. `tools` maps calls to tools, because progress names only the call.
fn sentence(event: &Value, tools: &mut HashMap<String, String>) -> Option<String> {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let (name, call) = (text("event"), text("call"));
    if !text("tool").is_empty() {
        tools.insert(call.to_owned(), text("tool").to_owned());
    }
    let detail = match name {
        // The user has just submitted the file with the calls.
        "call.requested" => return None,
        "call.started" => format!("attempt {}", event["attempt"]),
        "call.progress" => {
            format!("{:>3.0} %  {}", event["fraction"].as_f64().unwrap_or_default() * 100.0, text("message"))
        }
        "call.suspended" => format!("{}  {}", text("kind"), text("suspension")),
        "call.resolved" => format!("{} by {}", text("decision"), text("by")),
        "call.settled" => text("outcome").to_owned(),
        _ => String::new(),
    };
    let tool = tools.get(call).map_or("", String::as_str);
    Some(format!("{name:<15} {tool:<17} {detail}").trim_end().to_owned())
}

/// Ends the demo when it takes too long.
pub(crate) struct Watchdog(Sender<()>);

impl Watchdog {
    pub(crate) fn start(host: &Host, folder: &Folder) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (process, log) = (host.process(), folder.log());
        std::thread::spawn(move || {
            if stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                console::failure(&format!(
                    "the demo took more than {}; the host's log is {}",
                    console::duration(PATIENCE),
                    log.display()
                ));
                // The process ends in a moment, whether or not the host could be killed.
                let _ = process.kill();
                std::process::exit(1);
            }
        });
        Self(stop)
    }

    pub(crate) fn stop(self) {
        drop(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_a_line_and_request_is_not_shown() {
        let mut tools = HashMap::new();
        let mut check = |event: &str, expected: Option<&str>| {
            let event = serde_json::from_str(event).unwrap();
            assert_eq!(sentence(&event, &mut tools).as_deref(), expected);
        };
        check(r#"{"event":"call.requested","call":"a","tool":"count"}"#, None);
        check(
            r#"{"event":"call.progress","call":"a","fraction":0.4,"message":"4 of 10"}"#,
            Some("call.progress   count              40 %  4 of 10"),
        );
        check(r#"{"event":"turn.settled","state":"settled"}"#, Some("turn.settled"));
    }
}
