;; attack = 'A result whose place in memory is not aligned.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (i32.const 4097))
