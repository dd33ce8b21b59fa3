;; attack = 'One log line of 12 MiB.'
;; expect = 'failed(limit_exceeded)'
;; says = '`limits.hostcall_bytes`'
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 200)) (i32.const -1)) (then (unreachable)))
  (call $log (i32.const 1) (i32.const 4096) (i32.const 12582912))
  (unreachable))
