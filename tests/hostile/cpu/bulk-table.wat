;; attack = 'Endless fills and copies of a large table, one instruction each.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(table $t 9000 funcref)

(func $run (param i32 i32) (result i32)
  (loop $again
    (table.fill $t (i32.const 0) (ref.null func) (i32.const 9000))
    (table.copy $t $t (i32.const 0) (i32.const 4000) (i32.const 4000))
    (br $again))
  (unreachable))
