;; attack = 'A failure with a message of 6 MiB that a model would have to read.'
;; expect = 'failed(tool_failed)'
;; says = 'bytes more'
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 128)) (i32.const -1)) (then (unreachable)))
  (memory.fill (i32.const 4096) (i32.const 120) (i32.const 6291456))
  (i32.store (i32.const 16) (i32.const 1))
  (i32.store (i32.const 20) (i32.const 1))
  (i32.store (i32.const 24) (i32.const 4096))
  (i32.store (i32.const 28) (i32.const 6291456))
  (i32.const 16))
