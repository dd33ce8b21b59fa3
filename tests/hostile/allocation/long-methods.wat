;; attack = 'Unsent requests, each with a method of one megabyte, which the library does not limit.'
;; expect = 'failed(limit_exceeded)'
;; says = 'host_bytes'
;; plugin.grants.http = [{ url = "https://example.com/", methods = ["GET"] }]
;; at_once = 4

(import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))
(import "wasi:http/types@0.2.12" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
(import "wasi:http/types@0.2.12" "[method]outgoing-request.set-method" (func $method (param i32 i32 i32 i32) (result i32)))

(func $run (param i32 i32) (result i32)
  (drop (memory.grow (i32.const 16)))
  (memory.fill (i32.const 131072) (i32.const 77) (i32.const 1048576))
  (loop $again
    ;; The tenth kind of method is one of the guest's own.
    (if (call $method (call $request (call $fields)) (i32.const 9) (i32.const 131072) (i32.const 1048576))
      (then (unreachable)))
    (br $again))
  (unreachable))
