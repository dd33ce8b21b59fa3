;; attack = 'Calls thirty tools at once, in a loop.'
;; expect = 'failed(limit_exceeded)'
;; says = 'nested_calls'
;; arguments = '{"calls":[<<{"tool":"durable_calls_in_a_loop","arguments":{}},*29>>{"tool":"durable_calls_in_a_loop","arguments":{}}]}'
;; options = '{"durable":true}'
;; plugin.grants.calls = ['durable_*']
;; proven_by = ['host/domain/src/turn/tests/nested.rs::calls_of_all_nested_turns_of_a_call_are_limited']

(import "toolgate:plugin/durable@0.1.2" "call-tools" (func $call_tools (param i32 i32 i32)))

;; Its own arguments are the request. A call without arguments returns at once.
(func $run (param $at i32) (param $len i32) (result i32)
  (if (i32.eq (local.get $len) (i32.const 2)) (then (return (call $ok_number (i64.const 1)))))
  (loop $again
    (call $call_tools (local.get $at) (local.get $len) (i32.const 200))
    (br_if $again (i32.eqz (i32.load8_u (i32.const 200)))))
  (unreachable))
