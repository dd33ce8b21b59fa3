;; attack = 'Progress data of a million opening brackets.'
;; expect = 'ok'

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 32)) (i32.const -1)) (then (unreachable)))
  (memory.fill (i32.const 4096) (i32.const 91) (i32.const 1000000))
  (call $progress (i32.const 4096) (i32.const 10) (i32.const 0) (f64.const 0) (i32.const 1)
    (i32.const 4096) (i32.const 1000000))
  (call $ok_number (i64.const 1)))
