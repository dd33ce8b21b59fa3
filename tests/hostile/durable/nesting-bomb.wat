;; attack = 'Calls itself through the host, again and again.'
;; expect = 'ok'
;; says = 'nesting_depth'
;; options = '{"durable":true}'
;; plugin.grants.calls = ['durable_*']
;; at_once = 4
;; proven_by = ['tests/tests/nested/limits.rs::turns_are_nested_to_a_limit']

(import "toolgate:plugin/durable@0.1.2" "call-tools" (func $call_tools (param i32 i32 i32)))
(data (i32.const 4096) "{\"calls\":[{\"tool\":\"durable_nesting_bomb\",\"arguments\":{}}]}")

;; The result of the call that is nested deepest is a failure, and each call returns what it got.
(func $run (param i32 i32) (result i32)
  (call $call_tools (i32.const 4096) (i32.const 58) (i32.const 200))
  (if (i32.load8_u (i32.const 200)) (then (return (call $ok_number (i64.load8_u (i32.const 204))))))
  (call $ok (i32.load (i32.const 204)) (i32.load (i32.const 208))))
