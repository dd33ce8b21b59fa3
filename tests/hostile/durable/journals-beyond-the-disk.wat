;; attack = 'Calls that wait, each with a journal of a megabyte, of a principal that may keep four megabytes on the disk.'
;; expect = 'refused with 429 when the disk has that much of it'
;; options = '{"durable":true}'
;; settings = 'quota.principal.mallory.kept_bytes = 4000000'
;; plugin.grants.keyvalue = true
;; proven_by = ['host/store/tests/laws/journals.rs::a_journal_counts_as_it_is_written']
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$round-$n/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"a","tool":"$tool","arguments":{}}]}'
;; status = [201, 429]
;; times = 10
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$round/turns'
;; body = '{"calls":[{"id":"a","tool":"$tool","arguments":{}}]}'
;; status = [429]
;; says = 'quota.kept_bytes'

(import "toolgate:plugin/durable@0.1.2" "await-external" (func $await_external (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.get" (func $get (param i32 i32 i32 i32)))
(import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "default")
(data (i32.const 4200) "{\"prompt\":\"Ready?\",\"expires_ms\":20000}")

(func $run (param i32 i32) (result i32)
  (local $bucket i32)
  (local $n i32)
  (call $open (i32.const 4096) (i32.const 7) (i32.const 32))
  (local.set $bucket (i32.load (i32.const 36)))
  (call $set (local.get $bucket) (i32.const 4096) (i32.const 7) (i32.const 8192) (i32.const 49152) (i32.const 200))
  (loop $again
    (call $get (local.get $bucket) (i32.const 4096) (i32.const 7) (i32.const 200))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 16))))
  (call $await_external (i32.const 4200) (i32.const 38) (i32.const 200))
  (call $ok_number (i64.const 1)))
