//! `hook`: asks the people and rules of a host whether a coding agent may use one of its own tools.

use std::io::{self, Read as _};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use dispatch::ports::Clock as _;
use domain::{Digest, Span, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate::WallClock;

use super::Run;
use super::mcp::is_running;
use crate::args::Connection;
use crate::client::Client;
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// The maximum size of a request of an agent, in bytes.
const MAX_REQUEST: u64 = 16 << 20;

/// The tool that is called for a use.
const TOOL: &str = "agent_tool";

/// The maximum size of an answer of the host, in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// The revision of the protocol whose requests need no handshake over HTTP.
const REVISION: &str = "2025-11-25";

/// Decide about a tool use of a coding agent: its hook runs this
///
/// It reads the agent's request from standard input, makes a call of the tool `agent_tool`, and prints the decision in the form that
/// the agent reads. Rules can allow or deny; otherwise people answer in the console, with a link, or with `toolgate approve`. If
/// nobody has answered in time, the agent asks its own user. The same use joins the call that still waits.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate hook claude-code --data ~/toolgate-data
  toolgate hook claude-code --url https://tools.example.com --token-file token --wait 300

The host needs the plugin `agent`. If the host cannot be asked, the agent asks its own user.")]
pub(crate) struct Hook {
    /// The agent
    agent: CodingAgent,
    /// How long to wait for a person, in seconds. The agent must wait longer for its hook
    #[arg(long, value_name = "SECONDS", default_value_t = 50)]
    wait: u64,
    /// The plugin whose tool `agent_tool` is called for a use of an agent's tool. The decision of no other plugin counts
    #[arg(long, value_name = "NAME", default_value = "agent")]
    plugin: String,
    /// Print JSON also if the request cannot be read: the error as one object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CodingAgent {
    /// Claude Code: its hooks PreToolUse and PermissionRequest
    ClaudeCode,
}

/// The request of a hook. An agent may add members.
#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(rename = "hook_event_name")]
    event: Event,
    tool_name: String,
    tool_input: Box<RawValue>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    session_id: String,
    /// Each use has its own. So one approval is good for one use.
    #[serde(default)]
    tool_use_id: Option<String>,
}

/// The arguments of the host's tool.
#[derive(Serialize)]
struct Use<'a> {
    tool: &'a str,
    input: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Event {
    /// Before each use of a tool.
    PreToolUse,
    /// Before the agent asks its own user.
    PermissionRequest,
}

/// The arguments of `agent_tool` that the host ran.
#[derive(Deserialize)]
struct Ran {
    tool: String,
    input: Box<RawValue>,
    #[serde(default)]
    folder: Option<String>,
}

/// The host's verdict on a use.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is allowed, with the text of this input if an approver has changed it.
    Allowed(Option<String>),
    /// A rule or a person denied it, for this reason.
    Denied(String),
    /// Nobody has decided, for this reason.
    Open(String),
}

impl Run for Hook {
    fn run(mut self, terminal: &Terminal) -> Result<(), Report> {
        let mut text = String::new();
        let read = io::stdin().lock().take(MAX_REQUEST).read_to_string(&mut text);
        read.context("cannot read the agent's request from standard input")?;
        let asked: Asked = serde_json::from_str(&text).map_err(|error| {
            // Agents take the code of a usage error for a denial.
            Report::new(Exit::Refused, "standard input is not a request of the hooks PreToolUse or PermissionRequest")
                .because(error)
        })?;
        let until = WallClock.now() + Span::from_secs(self.wait);
        let verdict = self.ask(&asked, until).unwrap_or_else(|report| Verdict::Open(report.message().to_owned()));
        if let Some(said) = said(asked.event, verdict) {
            terminal.line(serde_json::to_string(&said)?)?;
        }
        Ok(())
    }
}

impl Hook {
    fn ask(&mut self, asked: &Asked, until: Timestamp) -> Result<Verdict, Report> {
        // If it does not run, the client says so.
        is_running(&mut self.host)?;
        let client = Client::new(&self.host)?;
        // The text of the input, so that people see and approve each digit of it.
        let use_of = Use { tool: &asked.tool_name, input: &asked.tool_input, folder: asked.cwd.as_deref() };
        let mut call = (TOOL.to_owned(), serde_json::to_string(&use_of)?);
        let id = asked.tool_use_id.as_ref().map(|id| {
            let digest = Digest::of_parts(&[asked.session_id.as_bytes(), id.as_bytes()]);
            json!({ "dev.toolgate/callId": format!("hook-{}", digest.hex()) })
        });
        loop {
            let left = (until - WallClock.now()).millis().max(1_000);
            let request = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{},"name":{},"arguments":{}}}}}"#,
                id.as_ref().unwrap_or(&json!({})),
                json!(call.0),
                call.1
            );
            let Some(answer) = exchange(&client, &request, Duration::from_millis(left))? else {
                return Ok(Verdict::Open("it still waits for a person".to_owned()));
            };
            let about = &answer["result"]["_meta"]["dev.toolgate/call"];
            if about["outcome"].is_string() || WallClock.now() >= until {
                return Ok(verdict(&answer, &self.plugin, &use_of));
            }
            let Some(id) = about["call"].as_str() else { return Ok(verdict(&answer, &self.plugin, &use_of)) };
            call = ("toolgate_wait".to_owned(), json!({ "call": id }).to_string());
        }
    }
}

/// Sends a request. `None`: the host has not answered in this time. The call goes on.
fn exchange(client: &Client, request: &str, time: Duration) -> Result<Option<Value>, Report> {
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", REVISION)];
    let answer = match client.send("/mcp", &headers, request.as_bytes(), Some(time)) {
        Err(ureq::Error::Timeout(_)) => return Ok(None),
        answer => answer.map_err(|error| Report::new(Exit::Unreachable, "the host does not answer").because(error))?,
    };
    let status = answer.status();
    let text = answer.into_body().into_with_config().limit(MAX_ANSWER).read_to_string();
    let text = text.context("the answer of the host is incomplete")?;
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let value = value.filter(|value| value.get("jsonrpc").is_some());
    value.map(Some).ok_or_else(|| Report::new(Exit::Refused, format!("the host answered {status}: {}", text.trim())))
}

/// The verdict in an answer of the host about this use.
fn verdict(answer: &Value, plugin: &str, of: &Use<'_>) -> Verdict {
    let result = &answer["result"];
    let said = result["content"][0]["text"].as_str().or_else(|| answer["error"]["message"].as_str());
    let said = said.unwrap_or("the host gave no reason").to_owned();
    let about = &result["_meta"]["dev.toolgate/call"];
    // The result is the plugin's text. So the input comes from the arguments, which people saw.
    let edited = about["editedArguments"].as_str().map(serde_json::from_str::<Ran>);
    match (about["outcome"].as_str(), about["plugin"].as_str() == Some(plugin), edited) {
        (Some("denied"), ..) => Verdict::Denied(said),
        (Some("ok"), true, None) => Verdict::Allowed(None),
        // An agent takes another input, and no other tool or folder.
        (Some("ok"), true, Some(Ok(ran))) if ran.tool != of.tool || ran.folder.as_deref() != of.folder => {
            Verdict::Open("the approver has changed the tool or the folder, which the agent cannot change".to_owned())
        }
        (Some("ok"), true, Some(Ok(ran))) => Verdict::Allowed(Some(ran.input.get().to_owned())),
        (Some("ok"), true, Some(Err(_))) => Verdict::Open("the approved arguments have no input".to_owned()),
        (Some("ok"), false, _) => Verdict::Open(format!("the tool {TOOL} is not of the plugin {plugin}")),
        _ => Verdict::Open(said),
    }
}

/// The decision as the agent reads it.
#[derive(Serialize)]
struct Said {
    #[serde(rename = "hookSpecificOutput")]
    output: Output,
}

#[derive(Serialize)]
#[serde(tag = "hookEventName", rename_all_fields = "camelCase")]
enum Output {
    PreToolUse {
        permission_decision: &'static str,
        permission_decision_reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_input: Option<Box<RawValue>>,
    },
    PermissionRequest {
        decision: Decision,
    },
}

/// The decision in an answer to `PermissionRequest`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<Box<RawValue>>,
}

/// `None`: the agent goes on as without a hook.
fn said(event: Event, verdict: Verdict) -> Option<Said> {
    let raw = |edited: Option<String>| edited.map(RawValue::from_string).transpose();
    let (decided, why, edited) = match verdict {
        Verdict::Allowed(edited) => match raw(edited) {
            Ok(edited) => ("allow", None, edited),
            Err(_) => return said(event, Verdict::Open("the edited input is not JSON".to_owned())),
        },
        Verdict::Denied(why) => ("deny", Some(why), None),
        Verdict::Open(_) if event == Event::PermissionRequest => return None,
        Verdict::Open(why) => ("ask", Some(format!("toolgate: {why}")), None),
    };
    let output = match event {
        Event::PreToolUse => Output::PreToolUse {
            permission_decision: decided,
            permission_decision_reason: why.unwrap_or_else(|| "allowed through toolgate".to_owned()),
            updated_input: edited,
        },
        Event::PermissionRequest => {
            Output::PermissionRequest { decision: Decision { behavior: decided, message: why, updated_input: edited } }
        }
    };
    Some(Said { output })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(outcome: &str, plugin: &str, edited: Option<&str>) -> Value {
        let mut about = json!({ "outcome": outcome, "plugin": plugin });
        if let Some(edited) = edited {
            about["editedArguments"] = edited.into();
        }
        json!({ "result": {
            "content": [{ "type": "text", "text": "why" }],
            "structuredContent": { "tool": "Bash", "input": { "command": "of the plugin" } },
            "_meta": { "dev.toolgate/call": about },
        }})
    }

    fn decision(event: Event, verdict: Verdict) -> Value {
        let said = said(event, verdict).map(|said| serde_json::to_value(said).unwrap());
        said.map_or(Value::Null, |mut said| said["hookSpecificOutput"].take())
    }

    /// The verdict on a use of Bash in the folder `/srv`.
    fn verdict(answer: &Value, plugin: &str) -> Verdict {
        let input = RawValue::from_string("{}".to_owned()).unwrap();
        super::verdict(answer, plugin, &Use { tool: "Bash", input: &input, folder: Some("/srv") })
    }

    #[test]
    fn only_a_denial_denies() {
        assert_eq!(verdict(&answer("denied", "agent", None), "agent"), Verdict::Denied("why".into()));
        for outcome in ["expired", "failed", "cancelled", "interrupted"] {
            assert_eq!(verdict(&answer(outcome, "agent", None), "agent"), Verdict::Open("why".into()), "{outcome}");
        }
        let unknown = json!({ "error": { "code": -32602, "message": "there is no such tool" } });
        assert_eq!(verdict(&unknown, "agent"), Verdict::Open("there is no such tool".into()));
    }

    #[test]
    fn only_the_plugin_and_the_approver_allow() {
        assert_eq!(verdict(&answer("ok", "agent", None), "agent"), Verdict::Allowed(None), "never the plugin's text");
        let edited = r#"{"tool":"Bash","input":{"n":12345678901234567890123},"folder":"/srv"}"#;
        let allowed = Verdict::Allowed(Some(r#"{"n":12345678901234567890123}"#.to_owned()));
        assert_eq!(verdict(&answer("ok", "agent", Some(edited)), "agent"), allowed);
        for answer in
            [answer("ok", "other", None), answer("ok", "other", Some(edited)), answer("ok", "agent", Some("{}"))]
        {
            assert!(matches!(verdict(&answer, "agent"), Verdict::Open(_)), "{answer}");
        }
    }

    #[test]
    fn approver_cannot_change_the_tool_or_the_folder() {
        for edited in [
            r#"{"tool":"Read","input":{},"folder":"/srv"}"#,
            r#"{"tool":"Bash","input":{},"folder":"/"}"#,
            r#"{"tool":"Bash","input":{}}"#,
        ] {
            let verdict = verdict(&answer("ok", "agent", Some(edited)), "agent");
            assert!(matches!(verdict, Verdict::Open(why) if why.contains("has changed the tool")), "{edited}");
        }
    }

    #[test]
    fn agent_reads_each_verdict_in_the_form_of_its_event() {
        use Event::{PermissionRequest, PreToolUse};
        let other = json!({ "command": "ls -l" });
        let edited = || Verdict::Allowed(Some(other.to_string()));
        let allowed = decision(PreToolUse, Verdict::Allowed(None));
        assert_eq!(
            allowed,
            json!({
                "hookEventName": "PreToolUse", "permissionDecision": "allow",
                "permissionDecisionReason": "allowed through toolgate",
            })
        );
        assert_eq!(decision(PreToolUse, edited())["updatedInput"], other);
        assert_eq!(decision(PreToolUse, Verdict::Denied("no".into()))["permissionDecision"], "deny");
        assert_eq!(decision(PreToolUse, Verdict::Open("later".into()))["permissionDecision"], "ask");
        assert_eq!(decision(PermissionRequest, Verdict::Allowed(None))["decision"], json!({ "behavior": "allow" }));
        let edited = decision(PermissionRequest, edited());
        assert_eq!(edited["hookEventName"], "PermissionRequest");
        assert_eq!(edited["decision"], json!({ "behavior": "allow", "updatedInput": other }));
        let denied = decision(PermissionRequest, Verdict::Denied("no".into()));
        assert_eq!(denied["decision"], json!({ "behavior": "deny", "message": "no" }));
        assert_eq!(decision(PermissionRequest, Verdict::Open("later".into())), Value::Null, "the agent asks its user");
    }
}
