;; attack = 'A `cabi_realloc` that makes the host write beyond the memory.'
;; expect = 'failed(trapped)'

(func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (i32.const -16))
