;; attack = 'A result that begins inside the memory and ends beyond it.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (call $ok (i32.const 131000) (i32.const 1000)))
