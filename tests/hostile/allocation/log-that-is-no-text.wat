;; attack = 'A log line that is not UTF-8.'
;; expect = 'failed(trapped)'

(data (i32.const 4096) "\ff\ff\ff\ff")

(func $run (param i32 i32) (result i32)
  (call $log (i32.const 1) (i32.const 4096) (i32.const 4))
  (unreachable))
