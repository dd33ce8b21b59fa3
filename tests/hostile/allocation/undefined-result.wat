;; attack = 'A result that is neither a success nor a failure: its discriminant is 7.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (i32.store (i32.const 16) (i32.const 7))
  (i32.const 16))
