;; attack = 'A result of 100 MiB that really exists.'
;; expect = 'failed(limit_exceeded)'
;; says = '`limits.hostcall_bytes`'
;; memory_mib = 320
;; at_once = 2

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 1700)) (i32.const -1)) (then (unreachable)))
  (memory.fill (i32.const 4096) (i32.const 49) (i32.const 104857600))
  (call $ok (i32.const 4096) (i32.const 104857600)))
