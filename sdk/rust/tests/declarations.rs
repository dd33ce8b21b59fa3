//! The declarations of the SDK in the exact JSON of the interface, and the findings of `check`.

use std::time::Duration;

use toolgate_sdk::prelude::*;
use toolgate_sdk::testing::check;
use toolgate_sdk::{AnyTool, ExecutorKind, Tools};

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only the schema matters")]
struct Args {
    to: String,
    amount: u32,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    yes: bool,
}

fn server() -> Tool<toolgate_sdk::Server, toolgate_sdk::Auto> {
    Tool::server("send", "Sends.", |args: Args, _: &Call| Ok(args.amount))
}

fn human() -> Tool<toolgate_sdk::Human<Answer>, toolgate_sdk::Auto> {
    Tool::human::<Args, Answer>("ask", "Asks.")
}

fn client() -> Tool<toolgate_sdk::Client, toolgate_sdk::Auto> {
    Tool::client::<Args, bool>("ring", "Rings.")
}

#[test]
fn every_option_has_the_form_that_the_interface_defines() {
    let result = json!({"type": "integer", "format": "uint32", "minimum": 0});
    let response = json!({"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]});
    let rows: [(AnyTool, Value); 8] = [
        (server().into(), json!({"result": result})),
        (
            server().title("T").timeout(Duration::from_secs(2)).recovery(Recovery::Ask).durable().into(),
            json!({"title": "T", "result": result, "timeout_ms": 2000, "durable": true, "recovery": "ask"}),
        ),
        (
            server()
                .requires_approval()
                .prompt("Send {amount} to {/to}?")
                .expires(Duration::from_secs(60))
                .on_expiry(OnExpiry::Approve)
                .editable(&["amount"])
                .risk(Risk::High)
                .context_keys(&["page"])
                .into(),
            json!({"result": result, "expires_ms": 60_000, "on_expiry": "approve",
                   "prompt": "Send {amount} to {/to}?", "editable": ["amount"], "risk": "high", "context_keys": ["page"]}),
        ),
        (
            server()
                .read_only()
                .idempotent()
                .open_world(false)
                .keep_for_turns(3)
                .keep_latest(1)
                .remove_after_days(90)
                .into(),
            json!({"result": result, "retention": {"max_age_turns": 3, "max_count": 1, "max_age_days": 90},
                   "hints": {"read_only": true, "idempotent": true, "open_world": false}}),
        ),
        (client().never_evict().into(), json!({"result": {"type": "boolean"}, "retention": {"never_evict": true}})),
        (
            client().requires_approval().editable_all().on_expiry(OnExpiry::Deny).into(),
            json!({"result": {"type": "boolean"}, "on_expiry": "deny", "editable": "all"}),
        ),
        (
            human().answer_on_expiry(&Answer { yes: false }).responses(&["answer", "decline"]).into(),
            json!({"on_expiry": {"answer": {"yes": false}}, "responses": ["answer", "decline"], "response": response}),
        ),
        (Tool::provider::<Args>("search", "Searches.").into(), json!({})),
    ];
    for (tool, options) in rows {
        assert_eq!(tool.options(), options, "{}", tool.name());
    }
}

#[test]
fn declaration_has_executor_and_approval() {
    let tools = Tools::new()
        .with(server().streaming())
        .with(client().requires_approval())
        .with(human())
        .with(Tool::provider::<Args>("search", "Searches."));
    let cells: Vec<_> = tools.iter().map(|t| (t.executor(), t.requires_approval(), t.streaming())).collect();
    assert_eq!(
        cells,
        [
            (ExecutorKind::Server, false, true),
            (ExecutorKind::Client, true, false),
            (ExecutorKind::Human, false, false),
            (ExecutorKind::Provider, false, false),
        ]
    );
    check(&tools).unwrap();
}

#[test]
fn a_schema_keeps_the_order_of_the_fields() {
    let parameters = AnyTool::from(server()).parameters();
    let names: Vec<_> = parameters["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["to", "amount"]);
}

#[derive(Deserialize)]
struct Large {}

impl JsonSchema for Large {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Large".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "description": "x".repeat(200_000)})
    }
}

#[test]
fn host_decides_about_the_size_of_a_schema() {
    check(&Tools::new().with(Tool::server("large", "Is large.", |_: Large, _: &Call| Ok(())))).unwrap();
}

#[test]
fn check_reports_every_finding_at_once() {
    let none = |_: u32, _: &Call| Ok(());
    let tools = Tools::new()
        .with(Tool::server("a b", " ", none))
        .with(server().read_only().destructive().never_evict().keep_latest(0).timeout(Duration::ZERO))
        .with(server().requires_approval().prompt("{to} {who} {").editable(&["sum"]))
        .with(human().prompt("{}"))
        .with(client().requires_approval().prompt("}{amount}").title("").context_keys(&["a", "a"]))
        .with(
            Tool::client::<Args, bool>("ring2", "Rings.").requires_approval().prompt("{{{amount}}} {/nobody/0} {to}"),
        );
    let findings = check(&tools).unwrap_err();
    let expected = [
        "a b: a name is 1 to 64 letters, digits, `_` or `-`",
        "a b: the description is empty, so no model will know when to use it",
        "a b: `parameters` must be of type object: use a struct with named fields for the arguments",
        "send: `timeout_ms` is 1 to 86400000",
        "send: a tool cannot be both read-only and destructive",
        "send: `never_evict` contradicts the other bounds on retention",
        "send: bounds on retention are at least 1",
        "send: another tool of this plugin has the same name",
        "send: `editable` names `sum`, which is not an argument",
        "send: `prompt` has a `{` without a `}`; write `{{` for a brace",
        "ask: `prompt` has `{}`, which is neither an argument's name nor a JSON Pointer",
        "ring: `title` has 1 to 128 characters",
        "ring: `context_keys` are at most 64 distinct names of 1 to 128 characters",
        "ring: `prompt` has a `}` without a `{`; write `}}` for a brace",
        "ring2: `prompt` shows `nobody`, which is not an argument",
    ];
    assert_eq!(findings.lines(), expected);
}
