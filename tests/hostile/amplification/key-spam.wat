;; attack = 'Writes new keys to its store endlessly.'
;; expect = 'failed(out_of_time)'
;; limits = { time_ms = 1000 }
;; plugin.grants.keyvalue = { keys = 1000, bytes = 1048576 }
;; at_once = 2

(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "default")

(func $run (param i32 i32) (result i32)
  (local $bucket i32)
  (local $n i32)
  (call $open (i32.const 4096) (i32.const 7) (i32.const 32))
  (local.set $bucket (i32.load (i32.const 36)))
  (loop $again
    (i32.store (i32.const 5000)
      (i32.add
        (i32.add (i32.and (local.get $n) (i32.const 15)) (i32.const 0x61616161))
        (i32.add
          (i32.shl (i32.and (i32.shr_u (local.get $n) (i32.const 4)) (i32.const 15)) (i32.const 8))
          (i32.add
            (i32.shl (i32.and (i32.shr_u (local.get $n) (i32.const 8)) (i32.const 15)) (i32.const 16))
            (i32.shl (i32.and (i32.shr_u (local.get $n) (i32.const 12)) (i32.const 15)) (i32.const 24))))))
    (call $set (local.get $bucket) (i32.const 5000) (i32.const 4) (i32.const 6000) (i32.const 100) (i32.const 48))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br $again))
  (unreachable))
