;; attack = 'A catalog that sleeps.'
;; expect = 'refused(catalog)'

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))

(func $tools (result i32)
  (call $block (call $wait (i64.const 9223372036854775807)))
  (unreachable))
