;; attack = 'Work that doubles in each of ninety steps, like a backtracking matcher.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(func $match (param $n i32) (result i64)
  (if (result i64) (i32.eqz (local.get $n))
    (then (i64.const 1))
    (else
      (i64.add
        (call $match (i32.sub (local.get $n) (i32.const 1)))
        (call $match (i32.sub (local.get $n) (i32.const 1)))))))

(func $run (param i32 i32) (result i32)
  (call $ok_number (call $match (i32.const 90))))
