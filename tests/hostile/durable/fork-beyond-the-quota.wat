;; attack = 'A fork of children of a principal that may have twenty open turns.'
;; expect = 'ok'
;; options = '{"durable":true}'
;; settings = '''
;; quota.principal.mallory.open_turns = 20
;; '''
;; plugin.grants.calls = ['durable_*']
;; proven_by = [
;;   'tests/tests/nested/limits.rs::turns_are_nested_to_a_limit',
;;   'host/domain/src/turn/tests/nested.rs::calls_of_all_nested_turns_of_a_call_are_limited',
;; ]

(import "toolgate:plugin/durable@0.1.2" "call-tools" (func $call_tools (param i32 i32 i32)))
(data (i32.const 4096) "{\"calls\":[{\"tool\":\"durable_fork_beyond_the_quota\",\"arguments\":{}},{\"tool\":\"durable_fork_beyond_the_quota\",\"arguments\":{}},{\"tool\":\"durable_fork_beyond_the_quota\",\"arguments\":{}},{\"tool\":\"durable_fork_beyond_the_quota\",\"arguments\":{}},{\"tool\":\"durable_fork_beyond_the_quota\",\"arguments\":{}}]}")

(func $run (param i32 i32) (result i32)
  (call $call_tools (i32.const 4096) (i32.const 291) (i32.const 200))
  (if (i32.load8_u (i32.const 200)) (then (return (call $ok_number (i64.load8_u (i32.const 204))))))
  (call $ok_number (i64.const 5)))
