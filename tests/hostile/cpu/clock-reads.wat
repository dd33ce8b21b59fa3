;; attack = 'A loop that reads the clock until three hours have passed.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64)))

(func $run (param i32 i32) (result i32)
  (local $until i64)
  (local.set $until (i64.add (call $now) (i64.const 10800000000000)))
  (loop $again (br_if $again (i64.lt_u (call $now) (local.get $until))))
  (call $ok_number (i64.const 1)))
