;; attack = 'Writes 8 MiB to its output at once without checking the permitted size.'
;; expect = 'ok'

(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
(import "wasi:io/streams@0.2.0" "[method]output-stream.write" (func $write (param i32 i32 i32 i32)))

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 130)) (i32.const -1)) (then (unreachable)))
  (call $write (call $stdout) (i32.const 4096) (i32.const 8000000) (i32.const 32))
  (call $ok_number (i64.const 1)))
