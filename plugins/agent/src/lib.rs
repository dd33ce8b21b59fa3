//! Approvals for the tools of a coding agent. The agent runs its tools itself. `toolgate hook` asks through this tool whether it
//! may.

use std::collections::BTreeMap;

use toolgate_sdk::prelude::*;

/// A use of one of the agent's own tools.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Use {
    /// The agent's name of its tool.
    tool: String,
    /// The arguments of that tool.
    input: BTreeMap<String, Value>,
    /// The folder in which the agent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

toolgate_sdk::plugin! {
    Tool::server(
        "agent_tool",
        "Asks whether a coding agent may use one of its own tools. The result is the use that was approved.",
        |asked: Use, _: &Call| Ok(asked),
    )
    .requires_approval()
    .title("Tool of a coding agent")
    .prompt("Let the agent use {tool}?")
    .editable(&["input"])
    .open_world(false)
    .idempotent(),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::{check, run};

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn result_is_the_use_that_was_approved() {
        let asked = json!({"tool": "Bash", "input": {"command": "ls", "n": 1.5}, "folder": "/work"});
        assert_eq!(run(tools(), "agent_tool", asked.clone()).result, Ok(asked));
    }
}
