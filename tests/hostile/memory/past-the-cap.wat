;; attack = 'Takes memory until none is left, and then crashes.'
;; expect = 'failed(out_of_memory)'
;; says = '(limit `limits.memory_bytes`)'
;; limits = { memory_bytes = 33554432 }
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (loop $again
    (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable)))
    (br $again))
  (unreachable))
