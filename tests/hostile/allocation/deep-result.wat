;; attack = 'A result of half a million nested arrays, which crashes a recursive parser.'
;; expect = 'failed(invalid_result)'
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (if (i32.eq (memory.grow (i32.const 32)) (i32.const -1)) (then (unreachable)))
  (memory.fill (i32.const 4096) (i32.const 91) (i32.const 500000))
  (memory.fill (i32.const 504096) (i32.const 93) (i32.const 500000))
  (call $ok (i32.const 4096) (i32.const 1000000)))
