;; attack = 'A log line with an undefined level.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (call $log (i32.const 77) (i32.const 4096) (i32.const 1))
  (unreachable))
