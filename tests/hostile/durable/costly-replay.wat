;; attack = 'Computes before it waits in a loop, so that the host computes the same after each wait.'
;; expect = 'failed(limit_exceeded)'
;; says = 'max_steps'
;; options = '{"durable":true}'
;; settings = 'max_steps = 100'
;; at_once = 2

(import "toolgate:plugin/durable@0.1.2" "ask" (func $ask (param i32 i32 i32)))
(data (i32.const 4096) "{\"prompt\":\"Ready?\",\"expires_ms\":1}")

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (local $sum i64)
  (loop $compute
    (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 6364136223846793005)) (i64.const 1)))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $compute (i32.lt_u (local.get $n) (i32.const 10000000))))
  ;; The compiler must not remove the sum.
  (if (i64.eq (local.get $sum) (i64.const 7)) (then (unreachable)))
  (loop $again
    (call $ask (i32.const 4096) (i32.const 34) (i32.const 200))
    (br $again))
  (unreachable))
