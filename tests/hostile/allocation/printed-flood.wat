;; attack = 'Prints 100 MB.'
;; expect = 'ok'
;; at_once = 2

(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
(import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
  (func $print (param i32 i32 i32 i32)))

(func $run (param i32 i32) (result i32)
  (local $out i32)
  (local $n i32)
  (local.set $out (call $stdout))
  (loop $again
    (call $print (local.get $out) (i32.const 4096) (i32.const 4096) (i32.const 32))
    (if (i32.load8_u (i32.const 32)) (then (unreachable)))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 25000))))
  (call $ok_number (i64.const 1)))
