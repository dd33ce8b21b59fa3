;; attack = 'A `cabi_realloc` that never returns; the host calls it to pass the arguments.'
;; expect = 'failed(out_of_time)'
;; limits = { time_ms = 300 }
;; at_once = 4

(func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (loop $again (br $again))
  (unreachable))
