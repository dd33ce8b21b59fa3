;; attack = 'A `cabi_realloc` that calls itself for ever while the host hands the arguments over.'
;; expect = 'failed(limit_exceeded)'
;; says = 'nested too deeply'

(func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (i32.add
    (call $realloc (local.get 0) (local.get 1) (local.get 2) (local.get 3))
    (i32.const 1)))
