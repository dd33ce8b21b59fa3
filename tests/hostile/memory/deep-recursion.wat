;; attack = 'A function that recurses forever.'
;; expect = 'failed(limit_exceeded)'
;; says = 'nested too deeply'
;; at_once = 4

(func $deep (param i64) (result i64)
  (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (local.get 0)))

(func $run (param i32 i32) (result i32)
  (call $ok_number (call $deep (i64.const 0))))
