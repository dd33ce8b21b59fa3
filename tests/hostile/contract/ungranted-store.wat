;; attack = 'Imports a store without a grant.'
;; expect = 'refused(import-not-granted)'
;; says = 'keyvalue'

(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "default")

(func $run (param i32 i32) (result i32)
  (call $open (i32.const 4096) (i32.const 7) (i32.const 32))
  (unreachable))
