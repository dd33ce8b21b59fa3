;; attack = 'Overwrites one key endlessly, until a write fails.'
;; expect = 'ok'
;; limits = { time_ms = 20000, keyvalue_written_bytes = 4194304 }
;; plugin.grants.keyvalue = { keys = 1, bytes = 131072 }
;; at_once = 2

(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "default")

(func $run (param i32 i32) (result i32)
  (local $bucket i32)
  (call $open (i32.const 4096) (i32.const 7) (i32.const 32))
  (local.set $bucket (i32.load (i32.const 36)))
  (loop $again
    (call $set (local.get $bucket) (i32.const 5000) (i32.const 4) (i32.const 6000) (i32.const 50000) (i32.const 48))
    (br_if $again (i32.eqz (i32.load8_u (i32.const 48)))))
  (call $ok_number (i64.const 1)))
