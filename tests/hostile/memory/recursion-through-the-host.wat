;; attack = 'A function that calls the host and then itself, so that host frames lie between its own.'
;; expect = 'failed(limit_exceeded)'
;; says = 'nested too deeply'
;; at_once = 4

(func $deep
  (call $log (i32.const 0) (i32.const 4096) (i32.const 0))
  (call $deep))

(func $run (param i32 i32) (result i32)
  (call $deep)
  (unreachable))
