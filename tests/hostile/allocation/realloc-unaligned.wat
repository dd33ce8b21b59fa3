;; attack = 'A `cabi_realloc` that returns unaligned addresses.'
;; expect = 'failed(trapped)'

(import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))
(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
(global $n (mut i32) (i32.const 65537))

(func $realloc (export "cabi_realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
  (if (i32.gt_u (local.get $align) (i32.const 1)) (then (return (i32.const 4097))))
  (global.set $n (i32.add (global.get $n) (i32.const 256)))
  (global.get $n))

;; A list of numbers is what the host has to align.
(func $run (param i32 i32) (result i32)
  (i32.store (i32.const 4096) (call $wait (i64.const 0)))
  (call $poll (i32.const 4096) (i32.const 1) (i32.const 32))
  (unreachable))
