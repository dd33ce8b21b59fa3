//! The tools that the public conformance suite of the Model Context Protocol calls by name, for `tests/mcp`.
//!
//! They are not useful for agents.

use std::thread;
use std::time::Duration;

use schemars::{Schema, SchemaGenerator};
use toolgate_sdk::prelude::*;

/// Longer than a host waits before it makes a task of a call.
const LONG: Duration = Duration::from_millis(1500);

/// A name.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// How long to compute.
#[derive(Deserialize, JsonSchema)]
struct Work {
    /// Seconds. With 0, the result is immediate.
    #[schemars(range(max = 600))]
    seconds: u64,
    /// Distinguishes calls.
    label: Option<String>,
}

/// A file.
#[derive(Deserialize, JsonSchema)]
struct File {
    filename: String,
}

/// Whether the user is sure.
#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    confirm: bool,
}

/// Whether it is right.
#[derive(Deserialize, JsonSchema)]
struct Check {
    ok: bool,
}

/// A colour.
#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

/// The region of a request. A client repeats it in a header.
#[derive(Deserialize, JsonSchema)]
struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// Arguments whose schema uses the keywords that a server must not remove.
#[derive(Deserialize)]
struct Contact {}

impl JsonSchema for Contact {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Contact".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                },
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        })
    }
}

fn slow_compute(work: Work, call: &Call) -> Result<String, Failure> {
    if work.seconds > 0 {
        // A little longer, so that one second is a task.
        call.sleep(Duration::from_secs(work.seconds) + LONG / 3);
    }
    Ok(format!("computed {} for {} s", work.label.as_deref().unwrap_or("it"), work.seconds))
}

fn failing_job(_: NoArguments, call: &Call) -> Result<String, Failure> {
    call.sleep(LONG);
    Err(Failure::failed("this job always fails"))
}

fn confirm_delete(file: File, call: &Call) -> Result<String, Failure> {
    let sure: Confirmation = call.ask(Question::new(format!("Delete {}?", file.filename)))?;
    Ok(format!("{} is {}", file.filename, if sure.confirm { "deleted" } else { "kept" }))
}

fn ask_name(_: NoArguments, call: &Call) -> Result<String, Failure> {
    let given: Name = call.ask(Question::new("What is your name?"))?;
    Ok(format!("Hello, {}!", given.name))
}

fn ask_confirmation(_: NoArguments, call: &Call) -> Result<String, Failure> {
    let given: Check = call.ask(Question::new("Please confirm"))?;
    Ok(format!("state-ok: {}", given.ok))
}

fn ask_twice(_: NoArguments, call: &Call) -> Result<String, Failure> {
    let given: Name = call.ask(Question::new("Step 1: What is your name?"))?;
    let favorite: Color = call.ask(Question::new("Step 2: What is your favorite color?"))?;
    Ok(format!("{} likes {}", given.name, favorite.color))
}

fn ask_then_work(_: NoArguments, call: &Call) -> Result<String, Failure> {
    let given: Name = call.ask(Question::new("What is your name?"))?;
    call.sleep(LONG);
    Ok(format!("computed for {}", given.name))
}

fn with_progress(_: NoArguments, call: &Call) -> Result<String, Failure> {
    for (done, percent) in [(0.0, 0), (0.5, 50), (1.0, 100)] {
        call.progress_with(&format!("{percent} of 100"), done, &json!({"percent": percent}));
        thread::sleep(Duration::from_millis(50));
    }
    Ok("done".to_owned())
}

fn log(_: NoArguments, call: &Call) -> Result<&'static str, Failure> {
    for level in [Level::Debug, Level::Info, Level::Warn] {
        call.log(level, "clients do not see this");
    }
    Ok("logged")
}

toolgate_sdk::plugin! {
    Tool::server("greet", "Greets.", |to: Name, _: &Call| Ok(format!("Hello, {}!", to.name))).read_only(),
    Tool::server("slow_compute", "Computes for some seconds.", slow_compute).durable(),
    Tool::server("failing_job", "Fails after a while.", failing_job).durable(),
    Tool::server("confirm_delete", "Asks before it deletes nothing.", confirm_delete).durable(),
    Tool::server("gated_greet", "Greets, once a person approves.", |to: Name, _: &Call| {
        Ok(format!("Hello, {}!", to.name))
    })
        .requires_approval()
        .prompt("Greet {name}?"),
    Tool::server("json_schema_2020_12_tool", "Has a schema with many keywords.", |_: Contact, _: &Call| Ok("valid")),
    Tool::server("regional", "Runs in a region that a header names too.", |of: Region, _: &Call| Ok(of.region)),
    Tool::server("test_simple_text", "Gives a text.", |_: NoArguments, _: &Call| {
        Ok("This is a simple text response for testing.")
    }),
    Tool::server("test_error_handling", "Fails.", |_: NoArguments, _: &Call| {
        Err::<(), _>(Failure::failed("This tool intentionally returns an error for testing"))
    }),
    Tool::server("test_tool_with_progress", "Reports progress.", with_progress).streaming(),
    Tool::server("test_logging_tool", "Writes lines to the log.", log),
    Tool::server("test_streaming_elicitation", "Asks for a name.", ask_name).durable(),
    Tool::server("test_tool_with_task", "Asks for a name, then works.", ask_then_work).durable(),
    Tool::server("test_input_required_result_elicitation", "Asks for a name.", ask_name).durable(),
    Tool::server("test_input_required_result_request_state", "Asks for a confirmation.", ask_confirmation).durable(),
    Tool::server("test_input_required_result_tampered_state", "Asks for a confirmation.", ask_confirmation).durable(),
    Tool::server("test_input_required_result_multi_round", "Asks twice.", ask_twice).durable(),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::{Attempt, check};

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn answers_are_in_the_result() {
        let run = Attempt::at("test_input_required_result_multi_round", json!({}))
            .answered(json!({"name": "Ann"}))
            .answered(json!({"color": "blue"}))
            .run(&tools());
        assert_eq!(run.result, Ok(json!("Ann likes blue")));
    }
}
