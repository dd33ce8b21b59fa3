;; attack = 'Requests 4 GiB a hundred times and takes a little in between, so that a refusal might return memory.'
;; expect = 'ok'
;; says = '512'
;; limits = { memory_bytes = 33554432 }

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (loop $again
    (drop (memory.grow (i32.const 65536)))
    (drop (memory.grow (i32.const 10)))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 100))))
  (call $ok_number (i64.extend_i32_u (memory.size))))
