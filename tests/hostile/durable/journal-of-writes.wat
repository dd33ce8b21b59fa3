;; attack = 'Writes a key endlessly, and each write and its entry are a commit.'
;; expect = 'failed(out_of_time) or failed(limit_exceeded)'
;; options = '{"durable":true}'
;; limits = { time_ms = 1000 }
;; plugin.grants.keyvalue = true
;; at_once = 4

(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "default")

(func $run (param i32 i32) (result i32)
  (local $bucket i32)
  (call $open (i32.const 4096) (i32.const 7) (i32.const 32))
  (local.set $bucket (i32.load (i32.const 36)))
  (loop $again
    (call $set (local.get $bucket) (i32.const 4096) (i32.const 7) (i32.const 8192) (i32.const 100) (i32.const 200))
    (br $again))
  (unreachable))
