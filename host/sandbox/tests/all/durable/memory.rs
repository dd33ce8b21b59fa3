//! Durable calls on a host that has no memory left. It ends a run, and not a call that has begun.

use super::*;

/// Grows by as many pages as all guests together may have.
const GROWS: &str = "(drop (memory.grow (i32.const 32))) (call $ok_number (i64.const 1))";

/// Asks a long question.
const CHARGES: &str = "(call $ask (i32.const 4096) (i32.const 126000) (i32.const 200)) (call $ok_number (i64.const 1))";

#[test]
fn short_memory_ends_no_call_that_has_begun() {
    let sandbox = Sandbox::new(SandboxSettings { pool: 8, guest_memory: 2 << 20, ..SandboxSettings::default() });
    let sandbox = sandbox.expect("a pool");
    let load = |body: &str| {
        let component = component(body);
        sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads")
    };
    for new_code in [GROWS, CHARGES] {
        let message = failed(run(&load(new_code), &continued(PROMPT, &[])).0, FailureCode::Busy);
        assert!(message.contains("`guest_memory_bytes`"), "nothing was carried out: {message}");
        let plugin = load(&format!("{ASK} drop {new_code}"));
        let step = step(&waits(run(&plugin, &continued(PROMPT, &[])).0), answered("1"));
        let ended = run(&plugin, &continued(PROMPT, &[step])).0;
        let RunEnd::Repeating(failure) = ended else { panic!("{new_code}: {ended:?}") };
        assert!(failure.message.contains("`guest_memory_bytes`"), "{failure:?}");
    }
}
