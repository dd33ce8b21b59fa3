;; attack = 'A result at the last byte of the address space.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (i32.const -4))
