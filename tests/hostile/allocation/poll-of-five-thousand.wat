;; attack = 'Five thousand pollables, and a poll over all of them.'
;; expect = 'failed(limit_exceeded)'
;; says = 'handles'
;; at_once = 4

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))

(func $run (param i32 i32) (result i32)
  (local $at i32)
  (loop $again
    (i32.store offset=4096 (local.get $at) (call $wait (i64.const 9000000000000000000)))
    (local.set $at (i32.add (local.get $at) (i32.const 4)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 20000))))
  (call $poll (i32.const 4096) (i32.const 5000) (i32.const 32))
  (call $ok_number (i64.const 1)))
