//! A plugin without the `server` export. A test writes its declarations into a slot.

#[path = "../../fixture/src/slot.rs"]
mod slot;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "toolgate:plugin/declarations" });
}

use bindings::exports::toolgate::plugin::catalog;
use bindings::toolgate::plugin::tool_types::{Approval, Executor, Tool};

struct Fixture;

impl catalog::Guest for Fixture {
    fn tools() -> Vec<Tool> {
        slot::entries().iter().map(tool).collect()
    }
}

fn tool(entry: &slot::Entry) -> Tool {
    Tool {
        name: entry.name.clone(),
        description: entry.description.clone(),
        parameters: slot::text(&entry.parameters),
        executor: match entry.executor.as_str() {
            "server" => Executor::Server,
            "human" => Executor::Human,
            "client" => Executor::Client,
            "provider" => Executor::Provider,
            other => panic!("no executor `{other}`"),
        },
        approval: match entry.approval.as_str() {
            "auto" => Approval::Auto,
            "requires-approval" => Approval::RequiresApproval,
            other => panic!("no approval `{other}`"),
        },
        streaming: entry.streaming,
        options: slot::text(&entry.options),
    }
}

bindings::export!(Fixture with_types_in bindings);
