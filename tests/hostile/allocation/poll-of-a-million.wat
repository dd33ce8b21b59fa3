;; attack = 'A poll over the same handle a million times: 4 MB for the guest, much more for a naive host.'
;; expect = 'failed(limit_exceeded)'
;; limits = { time_ms = 2000 }
;; at_once = 2

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))

(func $run (param i32 i32) (result i32)
  (local $handle i32)
  (local $at i32)
  (if (i32.eq (memory.grow (i32.const 200)) (i32.const -1)) (then (unreachable)))
  (local.set $handle (call $wait (i64.const 9000000000000000000)))
  (local.set $at (i32.const 131072))
  (loop $again
    (i32.store (local.get $at) (local.get $handle))
    (local.set $at (i32.add (local.get $at) (i32.const 4)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 4131072))))
  (call $poll (i32.const 131072) (i32.const 1000000) (i32.const 32))
  (call $ok_number (i64.const 1)))
