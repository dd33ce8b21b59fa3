;; attack = 'A poll over an empty list, which might never end.'
;; expect = 'failed(trapped)'
;; limits = { time_ms = 2000 }

(import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))

(func $run (param i32 i32) (result i32)
  (call $poll (i32.const 4096) (i32.const 0) (i32.const 32))
  (unreachable))
