;; attack = 'A hundred thousand progress updates with 1 KiB each.'
;; expect = 'ok'
;; at_once = 4

(data (i32.const 4096) "\22")
(data (i32.const 5119) "\22")

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (memory.fill (i32.const 4097) (i32.const 120) (i32.const 1022))
  (loop $again
    (call $progress (i32.const 4096) (i32.const 10) (i32.const 1) (f64.const 0.5) (i32.const 1)
      (i32.const 4096) (i32.const 1024))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 100000))))
  (call $ok_number (i64.const 1)))
