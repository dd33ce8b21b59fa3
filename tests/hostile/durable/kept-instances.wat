;; attack = 'Three hundred calls, each of which fills four megabytes and then waits, of a plugin whose instances are kept while they wait.'
;; expect = 'each waits or is refused, and the instances make room for others'
;; options = '{"durable":true}'
;; limits = { linger_ms = 3600000 }
;; settings = 'guest_memory_bytes = 67108864'
;; proven_by = ['host/sandbox/tests/all/durable/lingering/dropping.rs::at_most_half_of_the_memory_is_kept', 'host/sandbox/tests/all/durable/lingering/dropping.rs::plugin_that_keeps_much_pushes_out_only_its_own']
;;
;; [[step]]
;; post = '/v1/conversations/$plugin/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"$round-first","tool":"$tool","arguments":{}}]}'
;; status = [201]
;; says = '"kind":"external"'
;;
;; [[step]]
;; post = '/v1/conversations/$plugin/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"$round-$n","tool":"$tool","arguments":{}}]}'
;; status = [201, 429]
;; times = 300
;; at_once = 16
;;
;; [[step]]
;; get = '/metrics'
;; as = 'root'
;; status = [200]
;; says = 'toolgate_lingering_instances_total{what="kept"}'
;; never = ['toolgate_lingering_instances_total{what="kept"} 0']

(import "toolgate:plugin/durable@0.1.2" "await-external" (func $await_external (param i32 i32 i32)))
(data (i32.const 4096) "{\"prompt\":\"Ready?\",\"expires_ms\":20000}")

(func $run (param i32 i32) (result i32)
  (drop (memory.grow (i32.const 64)))
  (memory.fill (i32.const 131072) (i32.const 97) (i32.const 4194304))
  (call $await_external (i32.const 4096) (i32.const 38) (i32.const 200))
  (call $ok_number (i64.const 1)))
