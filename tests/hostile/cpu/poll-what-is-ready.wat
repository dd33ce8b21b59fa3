;; attack = 'Endlessly polls an always ready pollable, so that the host never waits.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))

(func $run (param i32 i32) (result i32)
  (local $ready i32)
  (local.set $ready (call $wait (i64.const 0)))
  (loop $again
    (call $block (local.get $ready))
    (br $again))
  (unreachable))
