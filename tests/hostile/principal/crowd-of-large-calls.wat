;; attack = 'Sixteen calls of one plugin at once, each of which fills half of the memory of all guests and computes until its time is over.'
;; expect = 'failed(out_of_time) or failed(busy)'
;; limits = { memory_bytes = 33554432, time_ms = 500 }
;; settings = 'guest_memory_bytes = 67108864'
;; at_once = 16
;; ended = { 'failed(out_of_time)' = 1 }

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 500)) (i32.const -1)) (then (unreachable)))
  (memory.fill (i32.const 65536) (i32.const 1) (i32.const 32000000))
  (loop $again (br $again))
  (unreachable))
