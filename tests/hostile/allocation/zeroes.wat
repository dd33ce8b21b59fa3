;; attack = 'Makes the host write 4·10^18 zeroes to its output.'
;; expect = 'failed(trapped)'
;; memory_mib = 64

(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
(import "wasi:io/streams@0.2.0" "[method]output-stream.write-zeroes" (func $zeroes (param i32 i64 i32)))

(func $run (param i32 i32) (result i32)
  (call $zeroes (call $stdout) (i64.const 4611686018427387904) (i32.const 32))
  (unreachable))
