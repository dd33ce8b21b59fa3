;; attack = 'A result of bytes that are not UTF-8.'
;; expect = 'failed(trapped)'

(data (i32.const 4096) "\22\ff\fe\c0\80\22")

(func $run (param i32 i32) (result i32)
  (call $ok (i32.const 4096) (i32.const 6)))
