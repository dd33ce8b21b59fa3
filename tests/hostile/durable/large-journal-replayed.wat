;; attack = 'Fills its journal with four megabytes and then asks in a loop, so that the host reads the journal again after each question.'
;; expect = 'failed(limit_exceeded)'
;; says = 'max_steps'
;; options = '{"durable":true}'
;; settings = 'max_steps = 100'
;; plugin.grants.keyvalue = true
;; at_once = 2

(import "toolgate:plugin/durable@0.1.2" "ask" (func $ask (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.get" (func $get (param i32 i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "default")
(data (i32.const 4200) "{\"prompt\":\"Ready?\",\"expires_ms\":1}")

(func $run (param i32 i32) (result i32)
  (local $bucket i32)
  (local $n i32)
  (call $open (i32.const 4096) (i32.const 7) (i32.const 32))
  (local.set $bucket (i32.load (i32.const 36)))
  (call $set (local.get $bucket) (i32.const 4096) (i32.const 7) (i32.const 8192) (i32.const 49152) (i32.const 200))
  (loop $read
    (call $get (local.get $bucket) (i32.const 4096) (i32.const 7) (i32.const 200))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $read (i32.lt_u (local.get $n) (i32.const 60))))
  (loop $again
    (call $ask (i32.const 4200) (i32.const 34) (i32.const 200))
    (br $again))
  (unreachable))
