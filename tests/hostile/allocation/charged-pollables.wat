;; attack = 'More pollables than its host memory allows, with unlimited handles.'
;; expect = 'failed(limit_exceeded)'
;; says = 'host_bytes'
;; limits = { host_bytes = 262144 }
;; at_once = 4

(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))

(func $run (param i32 i32) (result i32)
  (loop $again
    (drop (call $wait (i64.const 9000000000000000000)))
    (br $again))
  (unreachable))
