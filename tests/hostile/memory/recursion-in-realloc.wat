;; attack = 'A `cabi_realloc` that recurses forever while the host passes the arguments.'
;; expect = 'failed(limit_exceeded)'
;; says = 'nested too deeply'

(func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (i32.add
    (call $realloc (local.get 0) (local.get 1) (local.get 2) (local.get 3))
    (i32.const 1)))
