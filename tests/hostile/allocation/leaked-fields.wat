;; attack = 'Undropped header objects with one short field each.'
;; expect = 'failed(limit_exceeded)'
;; says = 'host_bytes'
;; plugin.grants.http = [{ url = "https://example.com/", methods = ["GET"] }]
;; at_once = 4

(import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))
(import "wasi:http/types@0.2.12" "[method]fields.append" (func $append (param i32 i32 i32 i32 i32 i32)))

(data (i32.const 4096) "name")
(func $run (param i32 i32) (result i32)
  (loop $again
    (call $append (call $fields) (i32.const 4096) (i32.const 4) (i32.const 4096) (i32.const 4) (i32.const 4112))
    (br $again))
  (unreachable))
