;; attack = 'A result at an unaligned address.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (i32.const 4097))
