//! The tool lists of published MCP servers, and schemas of the libraries that people write them with. Each list is one plugin,
//! which the real host loads. Its tools take calls whose arguments fit their schemas, and no others.
//!
//! `tests/published` has the programs, in the versions of `package-lock.json` and `requirements.txt`. It starts each
//! server and asks it for its list.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup, say};
use toolgate_tests::http::outcomes;
use toolgate_tests::parts::Part;

/// The tools of one server or library.
#[derive(Deserialize)]
struct List {
    from: String,
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: String,
    /// The schema as a JSON text.
    parameters: String,
    /// Arguments that the library accepts. Without them, arguments are made from the schema.
    accepted: Option<Vec<Value>>,
    /// Arguments that the library refuses.
    #[serde(default)]
    refused: Vec<Value>,
}

/// A live tool, with its schema as the host wrote it.
#[derive(Deserialize)]
struct Live {
    name: String,
    parameters: Box<RawValue>,
}

/// The packages of libraries. The other packages are servers.
const LIBRARIES: [&str; 4] = ["@sinclair/typebox", "pydantic", "typebox", "zod"];

/// The number of schemas of servers that name draft-07 today. They may only become more.
const DRAFT_07: usize = 63;

/// The tools of each package today, in all of its lists. Each may only become more.
const TOOLS: [(&str, usize); 18] = [
    ("@modelcontextprotocol/server-brave-search", 2),
    ("@modelcontextprotocol/server-everything", 13),
    ("@modelcontextprotocol/server-filesystem", 14),
    ("@modelcontextprotocol/server-github", 26),
    ("@modelcontextprotocol/server-google-maps", 7),
    ("@modelcontextprotocol/server-memory", 9),
    ("@modelcontextprotocol/server-postgres", 1),
    ("@modelcontextprotocol/server-sequential-thinking", 1),
    ("@modelcontextprotocol/server-slack", 8),
    ("@notionhq/notion-mcp-server", 24),
    ("@playwright/mcp", 25),
    ("@sinclair/typebox", 1),
    ("@upstash/context7-mcp", 2),
    ("chrome-devtools-mcp", 32),
    ("pydantic", 4),
    ("tavily-mcp", 5),
    ("typebox", 1),
    ("zod", 4),
];

/// Runs `tests/published`.
fn lists() -> Vec<List> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let runner = root.join("node_modules/tsx/dist/cli.mjs");
    assert!(runner.is_file(), "the npm packages are missing: run `cargo xtask setup`");
    let python = root.join("target/tools/pydantic/bin/python");
    assert!(python.is_file(), "pydantic is missing: run `cargo xtask test`, or its part `web` alone");
    let mut lists = printed(Command::new("node").arg(&runner).arg("src/lists.ts"));
    lists.extend(printed(Command::new(python).args(["-B", "src/pydantic_lists.py"])));
    lists
}

/// The lists that a program in `tests/published` prints.
fn printed(program: &mut Command) -> Vec<List> {
    let output = program.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/published")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

impl List {
    /// The package without its version.
    fn package(&self) -> &str {
        self.from.split(' ').next().unwrap_or_default()
    }

    fn is_of_server(&self) -> bool {
        !LIBRARIES.contains(&self.package())
    }

    /// The number of schemas that name draft-07 as their dialect.
    fn count_draft_07(&self) -> usize {
        let schemas = self.tools.iter().map(|tool| serde_json::from_str::<Value>(&tool.parameters).unwrap());
        schemas.filter(|schema| schema["$schema"] == "http://json-schema.org/draft-07/schema#").count()
    }

    /// A plugin that declares these tools. Each returns its arguments.
    fn plugin(&self) -> Vec<u8> {
        let declared =
            |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        fixture(&self.tools.iter().map(declared).collect())
    }

    /// Submits these calls as the only turn of a conversation, each as the position of its tool and its arguments. Returns the
    /// outcomes and results.
    fn call(&self, host: &Host, conversation: &str, calls: &[(usize, &Value)]) -> Vec<(String, Value)> {
        let call = |(n, (tool, arguments)): (usize, &(usize, &Value))| json!({"id": format!("call-{n}"), "tool": self.tools[*tool].name, "arguments": arguments});
        let calls: Vec<_> = calls.iter().enumerate().map(call).collect();
        let turn = host.agent.settled(&host.agent.submit(conversation, Value::from(calls)));
        let results = turn["calls"].as_array().unwrap().iter().map(|call| call["content"].clone());
        outcomes(&turn).into_iter().zip(results).collect()
    }

    /// Calls every tool with arguments that fit its schema. Each returns them.
    fn accepts(&self, host: &Host, conversation: &str) -> usize {
        let mut fitting = Vec::new();
        for (n, tool) in self.tools.iter().enumerate() {
            let schema: Value = serde_json::from_str(&tool.parameters).unwrap();
            // Its last sample has no defaults and examples, because these need not fit the schema.
            let made = || conform::samples(&schema).pop().into_iter().collect();
            let samples = tool.accepted.clone().unwrap_or_else(made);
            assert!(!samples.is_empty(), "{}: {} has no arguments", self.from, tool.name);
            fitting.extend(samples.into_iter().map(|sample| (n, sample)));
        }
        let calls: Vec<_> = fitting.iter().map(|(n, arguments)| (*n, arguments)).collect();
        for ((outcome, content), (n, arguments)) in self.call(host, conversation, &calls).iter().zip(&calls) {
            let tool = &self.tools[*n].name;
            assert_eq!(
                (outcome.as_str(), &content["result"]),
                ("ok", *arguments),
                "{}: {tool}: {content:#}",
                self.from
            );
        }
        calls.len()
    }

    /// Calls tools with arguments that do not fit their schemas. None runs.
    fn refuses(&self, host: &Host, conversation: &str) -> usize {
        let nothing = json!({});
        let mut calls: Vec<(usize, &Value)> = Vec::new();
        for (n, tool) in self.tools.iter().enumerate() {
            let schema: Value = serde_json::from_str(&tool.parameters).unwrap();
            let requires = schema["required"].as_array().is_some_and(|required| !required.is_empty());
            calls.extend(requires.then_some((n, &nothing)));
            calls.extend(tool.refused.iter().map(|arguments| (n, arguments)));
        }
        if calls.is_empty() {
            return 0;
        }
        for ((outcome, content), (n, arguments)) in self.call(host, conversation, &calls).iter().zip(&calls) {
            let tool = &self.tools[*n].name;
            assert_eq!(outcome, "failed(invalid_arguments)", "{}: {tool} with {arguments}: {content:#}", self.from);
        }
        calls.len()
    }
}

#[test]
fn published_tool_lists_load_and_take_their_calls() {
    if Part::Web.is_left_out() {
        return;
    }
    let (lists, host) = (lists(), Setup::default().start());
    let (mut tools, mut accepted, mut refused) = (0, 0, 0);
    for list in &lists {
        // Two lists may have tools of the same name.
        let path = format!("/v1/plugins/list-{tools}");
        let loaded = host.admin.put(&path, &list.plugin()).ok(200);
        assert_eq!(loaded["tools"].as_array().map(Vec::len), Some(list.tools.len()), "{}: {loaded:#}", list.from);
        let live = live(&host);
        assert_eq!(live.len(), list.tools.len(), "{}", list.from);
        for (tool, live) in sorted(&list.tools).into_iter().zip(&live) {
            let is_verbatim = live.name == tool.name && live.parameters.get() == tool.parameters;
            assert!(is_verbatim, "{}: {} {} {}", list.from, tool.name, tool.parameters, live.parameters);
        }
        accepted += list.accepts(&host, &format!("accepted-{tools}"));
        refused += list.refuses(&host, &format!("refused-{tools}"));
        tools += list.tools.len();
        let removed = host.admin.delete(&path).ok(200);
        assert_eq!(removed["removed"], json!(format!("list-{}", tools - list.tools.len())));
    }
    say(&format!("{} lists, {tools} tools, {accepted} calls accepted, {refused} refused", lists.len()));
    assert!(lists.len() >= 20 && accepted >= tools && refused >= 150, "a list is missing, or a call");
    for (package, floor) in TOOLS {
        let offered: usize = lists.iter().filter(|list| list.package() == package).map(|list| list.tools.len()).sum();
        assert!(offered >= floor, "{package} has {offered} tools, and had {floor}");
    }
    let draft_07: usize = lists.iter().filter(|list| list.is_of_server()).map(List::count_draft_07).sum();
    assert!(draft_07 >= DRAFT_07, "{draft_07} schemas of servers name draft-07, and {DRAFT_07} did");
}

#[test]
fn readme_has_the_numbers_of_tools_and_servers() {
    let servers: Vec<_> = TOOLS.iter().filter(|(package, _)| !LIBRARIES.contains(package)).collect();
    let tools: usize = servers.iter().map(|(_, count)| count).sum();
    let readme = include_str!("../published/README.md");
    assert!(readme.contains(&format!("{tools} tools of {} servers", servers.len())), "{tools}, {}", servers.len());
}

/// The live tools, sorted by name.
fn live(host: &Host) -> Vec<Live> {
    #[derive(Deserialize)]
    struct Tools {
        tools: Vec<Live>,
    }
    let listed = host.agent.get("/v1/tools");
    let Tools { tools } = serde_json::from_str(&listed.text).unwrap_or_else(|error| panic!("{error}: {}", listed.text));
    tools
}

fn sorted(tools: &[Tool]) -> Vec<&Tool> {
    let mut sorted: Vec<_> = tools.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted
}
