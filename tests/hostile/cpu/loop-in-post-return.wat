;; attack = 'A post-return function that never ends; it runs after the result was passed.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; at_once = 4

(func (export "cabi_post_toolgate:plugin/server@0.1.2#run") (param i32)
  (loop $again (br $again)))
