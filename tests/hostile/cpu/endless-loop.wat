;; attack = 'A tool that computes forever, four times at once.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (loop $again (br $again))
  (unreachable))
