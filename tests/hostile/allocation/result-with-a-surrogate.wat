;; attack = 'A result with a lone surrogate in UTF-8.'
;; expect = 'failed(trapped)'

(data (i32.const 4096) "\22\ed\a0\80\22")

(func $run (param i32 i32) (result i32)
  (call $ok (i32.const 4096) (i32.const 5)))
