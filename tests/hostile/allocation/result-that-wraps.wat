;; attack = 'A result whose address and length wrap around to the beginning of the memory.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (call $ok (i32.const -16) (i32.const 32)))
