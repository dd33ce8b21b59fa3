;; attack = 'A million undropped pollables.'
;; expect = 'failed(limit_exceeded)'
;; says = 'handles'
;; at_once = 4

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (loop $again
    (drop (call $wait (i64.const 9000000000000000000)))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 1000000))))
  (call $ok_number (i64.const 1)))
