;; attack = 'Endless fills of 120 MiB of memory, one instruction each.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 2
;; memory_mib = 384

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 2000)) (i32.const -1)) (then (unreachable)))
  (loop $again
    (memory.fill (i32.const 4096) (i32.const 1) (i32.const 125000000))
    (br $again))
  (unreachable))
