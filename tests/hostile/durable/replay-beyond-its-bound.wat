;; attack = 'Computes for longer than a replay may take before it asks, so that no run after the answer reaches the question.'
;; expect = 'in_doubt'
;; options = '{"durable":true}'
;; limits.replay_ms = 5
;; settings = 'max_attempts = 2'
;; at_once = 4
;; proven_by = ['host/sandbox/tests/all/durable.rs::repeated_code_has_a_bound_of_its_own']

(import "toolgate:plugin/durable@0.1.2" "ask" (func $ask (param i32 i32 i32)))
(data (i32.const 4096) "{\"prompt\":\"Ready?\",\"expires_ms\":1}")

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (local $sum i64)
  (loop $compute
    (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 6364136223846793005)) (i64.const 1)))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $compute (i32.lt_u (local.get $n) (i32.const 100000000))))
  ;; The compiler must not remove the sum.
  (if (i64.eq (local.get $sum) (i64.const 7)) (then (unreachable)))
  (call $ask (i32.const 4096) (i32.const 34) (i32.const 200))
  (call $ok_number (local.get $sum)))
