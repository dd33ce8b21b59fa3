;; attack = 'Sixteen different results at once through one link, and another one later.'
;; expect = 'one result counts, the others are stale'
;; options = '{"durable":true}'
;; proven_by = ['tests/tests/http_api/external.rs::result_by_link_ends_the_wait_after_a_kill']
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$round/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"a","tool":"$tool","arguments":{}}]}'
;; status = [201]
;; keep = { turn = '/turn', suspension = '/pending/0/suspension' }
;;
;; [[step]]
;; post = '/v1/suspensions/$suspension/links'
;; body = '{}'
;; status = [200]
;; keep = { link = '/url' }
;;
;; [[step]]
;; as = 'stranger'
;; post = '$link'
;; body = '{"n":$n}'
;; times = 16
;; at_once = 16
;; exactly = { '200' = 1, '409' = 15 }
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/turns/$turn?wait_ms=60000'
;; status = [200]
;; says = '"trusted":false'
;;
;; [[step]]
;; as = 'stranger'
;; post = '$link'
;; body = '{"n":17}'
;; status = [409]
;; says = 'stale'

(import "toolgate:plugin/durable@0.1.2" "await-external" (func $await_external (param i32 i32 i32)))
(data (i32.const 4096) "{\"prompt\":\"The job ends\",\"schema\":{\"type\":\"object\"}}")

(func $run (param i32 i32) (result i32)
  (call $await_external (i32.const 4096) (i32.const 52) (i32.const 200))
  (call $ok (i32.load (i32.const 204)) (i32.load (i32.const 208))))
