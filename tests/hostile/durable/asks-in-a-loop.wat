;; attack = 'Asks a person the same question in a loop, and each question expires after a millisecond.'
;; expect = 'failed(limit_exceeded)'
;; says = 'max_steps'
;; options = '{"durable":true}'
;; settings = 'max_steps = 100'
;; at_once = 4
;; proven_by = ['host/domain/src/turn/tests/steps.rs::call_may_not_wait_for_ever']

(import "toolgate:plugin/durable@0.1.2" "ask" (func $ask (param i32 i32 i32)))
(data (i32.const 4096) "{\"prompt\":\"Ready?\",\"expires_ms\":1}")

(func $run (param i32 i32) (result i32)
  (loop $again
    (call $ask (i32.const 4096) (i32.const 34) (i32.const 200))
    (br $again))
  (unreachable))
