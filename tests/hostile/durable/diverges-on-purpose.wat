;; attack = 'Asks about a number made of everything that could differ between two runs: clocks, random numbers, timers, the size of its memory, what was left in it, and whether it should stop.'
;; expect = 'ok'
;; options = '{"durable":true}'
;; at_once = 8
;; proven_by = [
;;   'host/sandbox/tests/all/durable.rs::run_that_differs_ends_in_doubt',
;;   'host/sandbox/tests/all/durable.rs::clocks_and_random_numbers_are_the_same_in_each_run',
;; ]

(import "toolgate:plugin/durable@0.1.2" "ask" (func $ask (param i32 i32 i32)))
(import "toolgate:plugin/host@0.1.2" "stop-requested" (func $stop_requested (result i32)))
(import "wasi:clocks/wall-clock@0.2.0" "now" (func $wall (param i32)))
(import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64)))
(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $timer (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.ready" (func $ready (param i32) (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
(import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))
(global $sum (mut i64) (i64.const 0))
(data (i32.const 4096) "{\"prompt\":\"00000000000000000000\",\"expires_ms\":1}")

(func $add (param $n i64)
  (global.set $sum (i64.add (i64.mul (global.get $sum) (i64.const 31)) (local.get $n))))

;; Twenty digits of the sum, in the question.
(func $put
  (local $n i64)
  (local $at i32)
  (local.set $n (global.get $sum))
  (local.set $at (i32.const 4127))
  (loop $digit
    (local.set $at (i32.sub (local.get $at) (i32.const 1)))
    (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10)))))
    (local.set $n (i64.div_u (local.get $n) (i64.const 10)))
    (br_if $digit (i32.gt_u (local.get $at) (i32.const 4107)))))

(func $observe
  (local $timer i32)
  (local $at i32)
  (call $wall (i32.const 304))
  (call $add (i64.load (i32.const 304)))
  (call $add (i64.load32_u (i32.const 312)))
  (call $add (call $now))
  (call $add (call $random))
  (call $add (i64.extend_i32_u (call $stop_requested)))
  (local.set $timer (call $timer (i64.const 1000000)))
  (call $add (i64.extend_i32_u (call $ready (local.get $timer))))
  (call $block (local.get $timer))
  (call $add (i64.extend_i32_u (call $ready (local.get $timer))))
  (call $add (call $now))
  ;; Memory until no more is granted, and what is in it.
  (call $add (i64.extend_i32_u (memory.size)))
  (call $add (i64.extend_i32_s (memory.grow (i32.const 64))))
  (local.set $at (i32.shl (i32.sub (memory.size) (i32.const 1)) (i32.const 16)))
  (call $add (i64.load (local.get $at)))
  (i64.store (local.get $at) (call $random)))

(func $run (param i32 i32) (result i32)
  (local $asked i32)
  (loop $again
    (call $observe)
    (call $put)
    (call $ask (i32.const 4096) (i32.const 48) (i32.const 200))
    (local.set $asked (i32.add (local.get $asked) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $asked) (i32.const 20))))
  (call $ok_number (global.get $sum)))
