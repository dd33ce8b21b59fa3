;; attack = 'Endless copies of 64 MiB within the memory, one instruction each.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits.time_ms = 300
;; limits.memory_bytes = 134217728
;; at_once = 2
;; memory_mib = 384

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 2040)) (i32.const -1)) (then (unreachable)))
  (loop $again
    (memory.copy (i32.const 0) (i32.const 67000000) (i32.const 66000000))
    (br $again))
  (unreachable))
