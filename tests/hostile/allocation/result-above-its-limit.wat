;; attack = 'A result of 7 MiB: below the limit of one copy, above the limit of a result.'
;; expect = 'failed(limit_exceeded)'
;; says = '`limits.result_bytes`'
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 128)) (i32.const -1)) (then (unreachable)))
  (memory.fill (i32.const 4096) (i32.const 49) (i32.const 7340032))
  (call $ok (i32.const 4096) (i32.const 7340032)))
