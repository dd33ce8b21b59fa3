;; attack = 'Sixteen concurrent calls that compute forever, more than processors.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 16

(func $run (param i32 i32) (result i32)
  (local $n i64)
  (loop $again
    (local.set $n (i64.add (i64.mul (local.get $n) (i64.const 6364136223846793005)) (i64.const 1)))
    (br $again))
  (unreachable))
