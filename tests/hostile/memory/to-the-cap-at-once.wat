;; attack = 'Takes all permitted memory and writes to every page, thirty-two times at once.'
;; expect = 'ok'
;; says = '512'
;; limits = { memory_bytes = 33554432 }
;; settings = 'guest_memory_bytes = 67108864'
;; at_once = 32
;; memory_mib = 384

(func $run (param i32 i32) (result i32)
  (local $at i32)
  (if (i32.eq (memory.grow (i32.const 510)) (i32.const -1)) (then (unreachable)))
  (local.set $at (i32.const 4096))
  (loop $again
    (i32.store (local.get $at) (i32.const 1))
    (local.set $at (i32.add (local.get $at) (i32.const 4096)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 33554432))))
  (call $ok_number (i64.extend_i32_u (memory.size))))
