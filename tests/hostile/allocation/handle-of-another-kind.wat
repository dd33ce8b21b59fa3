;; attack = 'A stream passed as a pollable.'
;; expect = 'failed(trapped)'
;; says = 'handle'

(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))

(func $run (param i32 i32) (result i32)
  (call $block (call $stdout))
  (unreachable))
