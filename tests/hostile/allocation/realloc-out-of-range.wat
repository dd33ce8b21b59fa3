;; attack = 'A `cabi_realloc` that lets the host write behind the memory.'
;; expect = 'failed(trapped)'

(func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (i32.const -16))
