;; attack = "Endlessly grows memory and table by zero; each growth passes the host's limiter."
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(table $t 1 funcref)

(func $run (param i32 i32) (result i32)
  (loop $again
    (drop (memory.grow (i32.const 0)))
    (drop (table.grow $t (ref.null func) (i32.const 0)))
    (br $again))
  (unreachable))
