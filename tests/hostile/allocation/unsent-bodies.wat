;; attack = 'Unsent requests, each with a started body that the host keeps.'
;; expect = 'failed(limit_exceeded)'
;; says = 'host_bytes'
;; plugin.grants.http = [{ url = "https://example.com/", methods = ["POST"] }]
;; limits = { host_bytes = 4194304 }
;; at_once = 4

(import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))
(import "wasi:http/types@0.2.12" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
(import "wasi:http/types@0.2.12" "[method]outgoing-request.body" (func $body (param i32 i32)))

(func $run (param i32 i32) (result i32)
  (loop $again
    (call $body (call $request (call $fields)) (i32.const 4096))
    (br $again))
  (unreachable))
