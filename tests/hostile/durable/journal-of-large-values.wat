;; attack = 'Reads a value of 48 KiB endlessly, sixteen calls at once, so that their journals fill the memory of the host.'
;; expect = 'failed(limit_exceeded)'
;; says = 'journal_bytes'
;; options = '{"durable":true}'
;; plugin.grants.keyvalue = true
;; at_once = 16
;; proven_by = ['host/capabilities/src/journal/tests.rs::journal_has_at_most_so_many_entries_and_bytes']

(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.get" (func $get (param i32 i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "default")

(func $run (param i32 i32) (result i32)
  (local $bucket i32)
  (call $open (i32.const 4096) (i32.const 7) (i32.const 32))
  (local.set $bucket (i32.load (i32.const 36)))
  (call $set (local.get $bucket) (i32.const 4096) (i32.const 7) (i32.const 8192) (i32.const 49152) (i32.const 200))
  (loop $again
    (call $get (local.get $bucket) (i32.const 4096) (i32.const 7) (i32.const 200))
    (br $again))
  (unreachable))
