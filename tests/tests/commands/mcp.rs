//! `mcp`: a client over a pipe, with a host that runs and with one that the command starts.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};

/// How often a test looks for a suspension. Each look takes a moment.
const LOOKS: usize = 10_000;

/// A client that has started the command.
struct McpClient {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl McpClient {
    fn start(host: &Host) -> Self {
        let mut command = host.command(None, &["mcp", "--config", "toolgate.toml"]);
        let command = command.env_remove("TOOLGATE_TOKEN").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut client = Self { child, input, lines: BufReader::new(output).lines(), last: 0 };
        let begun = client.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(begun["protocolVersion"], "2025-11-25");
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn send(&mut self, method: &str, params: Value) {
        self.last += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
    }

    fn result(&mut self) -> Value {
        let mut answer: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer["result"].take()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params);
        self.result()
    }

    fn send_call(&mut self, tool: &str, arguments: Value) {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments }));
    }

    /// Closes its side, as clients do at their end.
    fn end(self) {
        let Self { mut child, input, .. } = self;
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

/// The only open suspension, as the owner of the folder sees it.
fn open(host: &Host) -> Value {
    let look = || host.cli(None, &["pending", "--json", "--config", "toolgate.toml"]);
    // Until the host runs, the command prints an error.
    let first = |out: &str| serde_json::from_str::<Value>(out.lines().next()?).ok();
    let found = (0..LOOKS).find_map(|_| first(&look().out).filter(|found| found.get("suspension").is_some()));
    found.unwrap()
}

fn approve(host: &Host, suspension: &Value) {
    let id = suspension["suspension"].as_str().unwrap();
    let said = host.cli(Some(&host.approver), &["approve", id, "--config", "toolgate.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
}

fn value(result: &Value) -> &Value {
    assert_eq!(result["isError"], false, "{result}");
    &result["structuredContent"]
}

#[test]
fn mcp_client_joins_the_host_of_the_folder() {
    let host = Setup::with(&["lab"]).start();
    let mut client = McpClient::start(&host);
    let tools = client.ask("tools/list", json!({}));
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"gated_echo") && names.contains(&"toolgate_wait"), "{names:?}");
    client.send_call("gated_echo", json!({ "value": { "n": 1 } }));
    let suspension = open(&host);
    assert_eq!(suspension["caller"], "mcp");
    approve(&host, &suspension);
    assert!(!value(&client.result()).is_null());
    client.end();
    assert_eq!(host.agent.get("/v1/tools").status, 200, "the host goes on");
}

/// The message of a task that waits for an approval.
fn message_of_a_task(host: &Host) -> String {
    let mut client = McpClient::start(host);
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let params = json!({ "name": "gated_echo", "arguments": { "value": {} }, "_meta": meta });
    let task = client.ask("tools/call", params);
    client.end();
    task["statusMessage"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

#[test]
fn address_of_the_console_is_for_clients_of_this_machine() {
    let near = Setup::with(&["lab"]).start();
    let message = message_of_a_task(&near);
    assert!(message.contains("/suspensions/susp_"), "{message}");
    let far = Setup::with(&["lab"]).tables("[server]\nbehind_proxy = true").start();
    let message = message_of_a_task(&far);
    assert!(message.contains("it is susp_") && !message.contains("http"), "{message}");
}

#[test]
fn call_of_an_mcp_client_survives_its_host() {
    let host = Setup::with(&["lab"]).prepare();
    let mut client = McpClient::start(&host);
    client.send_call("gated_echo", json!({ "value": { "n": 1 } }));
    let suspension = open(&host);
    client.child.kill().unwrap();
    client.child.wait().unwrap();

    let mut client = McpClient::start(&host);
    client.send_call("gated_echo", json!({ "value": { "n": 1 } }));
    assert_eq!(open(&host)["suspension"], suspension["suspension"], "the same call joins the open one");
    approve(&host, &suspension);
    assert!(!value(&client.result()).is_null());
    client.end();
}

#[test]
fn resource_is_read_through_a_host_that_runs() {
    let host = Setup::with(&["lab"]).start();
    let mut client = McpClient::start(&host);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let read = client.ask("resources/read", json!({ "uri": "ui://toolgate/call.html", "_meta": meta }));
    assert_eq!(read["contents"][0]["mimeType"], "text/html;profile=mcp-app", "{read}");
    client.end();
}
