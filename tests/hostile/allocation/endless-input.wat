;; attack = 'Reads 4·10^18 bytes from its input.'
;; expect = 'ok'
;; says = '1'

(import "wasi:cli/stdin@0.2.0" "get-stdin" (func $stdin (result i32)))
(import "wasi:io/streams@0.2.0" "[method]input-stream.read" (func $read (param i32 i64 i32)))

;; The input is closed from the start: 1 is the error that says so.
(func $run (param i32 i32) (result i32)
  (call $read (call $stdin) (i64.const 4611686018427387904) (i32.const 32))
  (call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 32)))))
