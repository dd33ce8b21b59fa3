//! A secret is redacted in all outputs of a guest, even if the guest has learned it.

use std::sync::Arc;

use capabilities::Grants;
use capabilities::secrets::{Secret, SecretValue};
use domain::outcome::FailureCode;
use toolgate_sandbox::{Job, RunEnd};
use toolgate_tests::wat::Wat;

use crate::reports::PRINTING;
use crate::world::{Heard, RUNTIME, failed, job, load, tight, value};

const SECRET: &str = "hunter2-hunter2";

/// The secret in the guest's memory: in a sentence at 4096, and in a JSON string at 5000.
const KNOWS: &str = r#"(data (i32.const 4096) "it is hunter2-hunter2!") (data (i32.const 5000) "\"hunter2-hunter2\"")"#;

fn tell(run: &str) -> (RunEnd, Arc<Heard>) {
    run_logged(Wat { body: run, items: KNOWS, ..Wat::default() })
}

fn run_logged(guest: Wat<'_>) -> (RunEnd, Arc<Heard>) {
    let component = guest.build();
    let value = SecretValue::new(SECRET).expect("a value");
    let secret = Secret { name: "PIN".into(), value, hosts: Vec::new(), places: Vec::new() };
    let grants = Arc::new(Grants { secrets: vec![secret], ..Grants::default() });
    let heard = Arc::new(Heard::default());
    let job = Job { grants, ..job("test", "{}") };
    let end = RUNTIME.block_on(load(&component).run(&job, &tight(), heard.clone()));
    (end.ended, heard)
}

#[test]
fn secret_is_redacted_in_result_progress_and_log() {
    let (outcome, heard) = tell(
        "(call $log (i32.const 2) (i32.const 4096) (i32.const 22))
         (call $progress (i32.const 4096) (i32.const 22) (i32.const 0) (f64.const 0) (i32.const 1) (i32.const 5000) (i32.const 17))
         (call $ok (i32.const 5000) (i32.const 17))",
    );
    assert_eq!(value(outcome), r#""[secret PIN]""#);
    assert_eq!(heard.log(), ["warn: it is [secret PIN]!"]);
    let updates = heard.updates.lock().expect("no panic");
    assert_eq!(updates[0].message, "it is [secret PIN]!");
    assert_eq!(updates[0].data.as_ref().map(domain::Json::as_str), Some(r#""[secret PIN]""#));
}

#[test]
fn secret_is_redacted_in_a_failure() {
    let (outcome, _) = tell(
        "(i32.store (i32.const 16) (i32.const 1)) (i32.store (i32.const 20) (i32.const 1))
         (i32.store (i32.const 24) (i32.const 4096)) (i32.store (i32.const 28) (i32.const 22)) (i32.const 16)",
    );
    assert_eq!(failed(outcome, FailureCode::ToolFailed), "it is [secret PIN]!");
}

#[test]
fn secret_is_redacted_in_the_output_of_a_crash() {
    let (outcome, heard) = run_logged(Wat {
        body: "(call $write (call $stderr) (i32.const 4096) (i32.const 22) (i32.const 32)) (unreachable)",
        items: KNOWS,
        imports: r#"(import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
          (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
            (func $write (param i32 i32 i32 i32)))"#,
        world: "import wasi:cli/stderr@0.2.0;",
        packages: PRINTING,
        ..Wat::default()
    });
    let message = failed(outcome, FailureCode::Trapped);
    assert!(message.ends_with("it said: it is [secret PIN]!"), "{message}");
    assert_eq!(heard.log(), ["warn: it is [secret PIN]!"]);
}
