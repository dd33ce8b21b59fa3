;; attack = 'A result in UTF-16 with half of a surrogate pair.'
;; expect = 'failed(trapped)'
;; encoding = 'utf-16'

(data (i32.const 4096) "\22\00\00\d8\22\00")

(func $run (param i32 i32) (result i32)
  (call $ok (i32.const 4096) (i32.const 3)))
