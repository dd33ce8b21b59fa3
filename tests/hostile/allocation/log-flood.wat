;; attack = 'Thirty thousand log lines of 4 KiB (120 MB), four times at once.'
;; expect = 'ok'
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (loop $again
    (call $log (i32.const 1) (i32.const 4096) (i32.const 4096))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 30000))))
  (call $ok_number (i64.const 1)))
