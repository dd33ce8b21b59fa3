;; attack = 'A million undropped streams to its own output.'
;; expect = 'failed(limit_exceeded)'
;; says = 'handles'
;; at_once = 4

(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (loop $again
    (drop (call $stdout))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 1000000))))
  (call $ok_number (i64.const 1)))
