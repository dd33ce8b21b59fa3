;; attack = 'A request for 4·10^18 random bytes.'
;; expect = 'failed(limit_exceeded)'
;; says = 'random bytes'
;; memory_mib = 64
;; at_once = 4

(import "wasi:random/random@0.2.0" "get-random-bytes" (func $bytes (param i64 i32)))

(func $run (param i32 i32) (result i32)
  (call $bytes (i64.const 4611686018427387904) (i32.const 32))
  (unreachable))
