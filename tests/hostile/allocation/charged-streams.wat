;; attack = 'More streams than its host memory allows, with unlimited handles.'
;; expect = 'failed(limit_exceeded)'
;; says = 'host_bytes'
;; limits = { host_bytes = 262144 }
;; at_once = 4

(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))

(func $run (param i32 i32) (result i32)
  (loop $again
    (drop (call $stdout))
    (br $again))
  (unreachable))
