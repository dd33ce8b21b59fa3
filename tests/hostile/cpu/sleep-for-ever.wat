;; attack = 'Sleeps for 292 years in a host function, where no tick of the engine reaches it; sixteen times at once.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 16

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))

(func $run (param i32 i32) (result i32)
  (call $block (call $wait (i64.const 9223372036854775807)))
  (unreachable))
