;; attack = 'Forged handles: it counts through the numbers that its neighbours may have.'
;; expect = 'failed(trapped)'
;; says = 'handle'

(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))

(func $run (param i32 i32) (result i32)
  (call $block (i32.const 12345))
  (unreachable))
