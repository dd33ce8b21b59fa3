;; attack = 'Four hundred values of one header field, copied: the library counts them as few, and charges the copy only afterwards.'
;; expect = 'failed(limit_exceeded)'
;; says = 'may be copied'
;; plugin.grants.http = [{ url = "https://example.com/", methods = ["GET"] }]

(import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))
(import "wasi:http/types@0.2.12" "[method]fields.append" (func $append (param i32 i32 i32 i32 i32 i32)))
(import "wasi:http/types@0.2.12" "[method]fields.clone" (func $clone (param i32) (result i32)))

(data (i32.const 4096) "name")
(func $run (param i32 i32) (result i32)
  (local $of i32)
  (local $made i32)
  (local.set $of (call $fields))
  (loop $again
    (call $append (local.get $of) (i32.const 4096) (i32.const 4) (i32.const 4096) (i32.const 0) (i32.const 4112))
    (local.set $made (i32.add (local.get $made) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $made) (i32.const 400))))
  (loop $copies
    (drop (call $clone (local.get $of)))
    (br $copies))
  (unreachable))
