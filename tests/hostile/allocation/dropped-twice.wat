;; attack = 'A handle that is dropped twice.'
;; expect = 'failed(trapped)'
;; says = 'handle'

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "[resource-drop]pollable" (func $give_back (param i32)))

(func $run (param i32 i32) (result i32)
  (local $handle i32)
  (local.set $handle (call $wait (i64.const 1)))
  (call $give_back (local.get $handle))
  (call $give_back (local.get $handle))
  (unreachable))
