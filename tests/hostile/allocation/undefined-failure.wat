;; attack = 'A failure of an undefined kind.'
;; expect = 'failed(trapped)'
;; says = 'discriminant'

(func $run (param i32 i32) (result i32)
  (i32.store (i32.const 16) (i32.const 1))
  (i32.store (i32.const 20) (i32.const 99))
  (i32.const 16))
