;; attack = 'Endless host calls, each served at once.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (loop $again
    (call $log (i32.const 0) (i32.const 4096) (i32.const 0))
    (br $again))
  (unreachable))
