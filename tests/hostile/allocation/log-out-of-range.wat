;; attack = 'A log line that begins beyond the memory.'
;; expect = 'failed(trapped)'

(func $run (param i32 i32) (result i32)
  (call $log (i32.const 1) (i32.const 2147483647) (i32.const 2147483647))
  (unreachable))
